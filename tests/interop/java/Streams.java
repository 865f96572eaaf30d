import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * One instance of a small application of Kafka Streams with the streams protocol.
 *
 * Arguments: address, application id, topology, state directory, and more settings as name=value. It says "running" when it
 * has its tasks, and "error" with what ended a thread, and leaves its group when its input ends. The line "shut down" ends the
 * whole application. For each word of its input, it says at which ports the count of that word is, and the count if it has it.
 */
public final class Streams {
    private static final String SHUTDOWN = "shut down";

    private Streams() {}

    public static void main(String[] args) throws IOException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.metadata.max.age.ms", 2000);
        for (String each : Arrays.copyOfRange(args, 4, args.length)) {
            settings.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
        }
        try (KafkaStreams streams = new KafkaStreams(topology(args[2]), settings)) {
            streams.setUncaughtExceptionHandler(error -> {
                System.out.println("error " + innermost(error));
                System.out.flush();
                return innermost(error).contains(SHUTDOWN)
                    ? StreamThreadExceptionResponse.SHUTDOWN_APPLICATION
                    : StreamThreadExceptionResponse.REPLACE_THREAD;
            });
            streams.setStateListener((now, before) -> {
                System.out.println(now.toString().toLowerCase());
                System.out.flush();
            });
            streams.start();
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String word = input.readLine(); word != null; word = input.readLine()) {
                System.out.println("count of " + word + ": " + where(streams, word));
                System.out.flush();
            }
            streams.close(Duration.ofSeconds(60));
            System.out.println("closed");
        }
    }

    /** The port of the instance that has a word's task, those of its standbys, and the count as this instance knows it. */
    private static String where(KafkaStreams streams, String word) {
        KeyQueryMetadata found = streams.queryMetadataForKey("counts", word, new StringSerializer());
        String standbys = found.standbyHosts().stream().map(each -> "" + each.port()).sorted().collect(Collectors.joining(","));
        String count;
        try {
            ReadOnlyKeyValueStore<String, Long> store =
                streams.store(StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()));
            count = "" + store.get(word);
        } catch (InvalidStateStoreException error) {
            count = "null";
        }
        return "active " + found.activeHost().port() + " standby " + standbys + " here " + count;
    }

    private static String innermost(Throwable error) {
        Throwable inner = error;
        while (inner.getCause() != null) {
            inner = inner.getCause();
        }
        return inner.getClass().getSimpleName() + ": " + inner.getMessage();
    }

    private static Topology topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "words" -> words(builder);
            case "joins" -> joins(builder);
            case "windows" -> windows(builder);
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static void words(StreamsBuilder builder) {
        KStream<String, String> lines = builder.stream("lines");
        lines.peek((key, line) -> {
                if (line.equals(SHUTDOWN)) {
                    throw new IllegalStateException(SHUTDOWN);
                }
            })
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("results");
    }

    /** A stream with a table by another key, and a stream with a stream within a window. */
    private static void joins(StreamsBuilder builder) {
        KTable<String, String> customers = builder.table("customers");
        KStream<String, String> orders = builder.stream("orders");
        KStream<String, String> payments = builder.stream("payments");
        orders.map((id, order) -> KeyValue.pair(order.split(" ")[0], id + " " + order))
            .join(customers, (order, customer) -> order + " by " + customer)
            .map((customer, order) -> KeyValue.pair(order.split(" ")[0], order))
            .to("results");
        orders.join(payments, (order, paid) -> order + " paid " + paid, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(5)))
            .map((id, paid) -> KeyValue.pair(id + " paid", paid))
            .to("results");
    }

    private static void windows(StreamsBuilder builder) {
        KStream<String, String> lines = builder.stream("lines");
        lines.groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(Materialized.as("windows"))
            .toStream()
            .map((window, count) -> KeyValue.pair(
                window.key() + "@" + window.window().start(), Long.toString(count)))
            .to("results");
    }
}
