import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's own clients at work: `java Soak NAME BOOTSTRAP READ SEED`. What it prints is described in worker.py. */
public final class Soak {
    private static final int PARTITIONS = 2;
    private static final int KEPT_TOPICS = 3;
    private static final CountDownLatch RESTING = new CountDownLatch(1);
    private static final CountDownLatch ENDING = new CountDownLatch(1);
    private static String name;
    private static String bootstrap;
    private static String read;

    public static void main(String[] args) throws Exception {
        name = args[0];
        bootstrap = args[1];
        read = args[2];
        long seed = Long.parseLong(args[3]);
        List<Thread> threads = new ArrayList<>();
        threads.add(new Thread(() -> produce(new Random(seed))));
        threads.add(new Thread(() -> transact(new Random(seed + 1))));
        threads.add(new Thread(() -> administer(new Random(seed + 2))));
        threads.add(new Thread(() -> member(false, new Random(seed + 3))));
        threads.add(new Thread(() -> member(true, new Random(seed + 4))));
        threads.forEach(thread -> thread.setDaemon(true));
        threads.forEach(Thread::start);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.strip().equals("rest")) {
                RESTING.countDown();
                for (Thread each : threads.subList(0, 3)) {
                    each.join();
                }
                say("rests");
            }
        }
        RESTING.countDown();
        ENDING.countDown();
        for (Thread each : threads) {
            each.join(30_000);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static boolean goesOn(CountDownLatch until, long ms) {
        try {
            return !until.await(ms, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            return false;
        }
    }

    private static void failed(String doing, Throwable error) {
        String text = "E " + doing + ": " + error;
        say(text.substring(0, Math.min(300, text.length())).replace('\n', ' '));
        goesOn(ENDING, 500);
    }

    /** The same bytes as `content` of tests/crash/loads.py. */
    private static byte[] content(long number) {
        var all = new StringBuilder().append(number).append(':');
        for (int i = 0; i < number * 7919 % 700; i++) {
            all.append((char) (i % 256));
        }
        return all.toString().getBytes(ISO_8859_1);
    }

    private static KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void produce(Random random) {
        KafkaProducer<byte[], byte[]> producer = null;
        long number = 0;
        while (goesOn(RESTING, 500)) {
            try {
                if (producer == null) {
                    producer = producer(Map.of("compression.type", "snappy"));
                }
                int count = 1 + random.nextInt(40);
                List<Long> numbers = new ArrayList<>();
                List<Future<RecordMetadata>> answers = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    numbers.add(number);
                    int partition = (int) (number % PARTITIONS);
                    answers.add(producer.send(new ProducerRecord<>(name + "-once", partition, null, content(number))));
                    number++;
                }
                producer.flush();
                var line = new StringBuilder("A");
                for (int i = 0; i < count; i++) {
                    RecordMetadata placed = answers.get(i).get();
                    line.append(' ').append(placed.partition()).append(':').append(placed.offset()).append(':').append(numbers.get(i));
                }
                say(line.toString());
            } catch (Exception error) {
                failed("producing", error);
                number += 40; // of these nothing is known
                producer = discard(producer);
            }
        }
        discard(producer);
    }

    private static void transact(Random random) {
        KafkaProducer<byte[], byte[]> producer = null;
        for (int number = 1; goesOn(RESTING, 1000); number++) {
            int count = 1 + random.nextInt(10);
            String outcome = "a";
            try {
                if (producer == null) {
                    producer = producer(Map.of("transactional.id", name + "-txn"));
                    producer.initTransactions();
                }
                producer.beginTransaction();
                for (int i = 0; i < count; i++) {
                    byte[] value = (number + ":" + i + ":" + count).getBytes(ISO_8859_1);
                    producer.send(new ProducerRecord<>(name + "-txn", i % PARTITIONS, null, value));
                }
                producer.flush();
                if (random.nextDouble() < 0.3) {
                    producer.abortTransaction();
                } else {
                    outcome = "u";
                    producer.commitTransaction();
                    outcome = "c";
                }
            } catch (Exception error) {
                failed("transacting", error);
                producer = discard(producer);
            }
            say("T " + number + " " + outcome + " " + count);
        }
        discard(producer);
    }

    private static KafkaProducer<byte[], byte[]> discard(KafkaProducer<byte[], byte[]> producer) {
        if (producer != null) {
            try {
                producer.close(Duration.ofSeconds(1));
            } catch (RuntimeException error) {
                failed("closing", error);
            }
        }
        return null;
    }

    private static void member(boolean comesAndGoes, Random random) {
        Map<String, Object> settings = new HashMap<>(Map.of("group.id", name, "auto.offset.reset", "earliest"));
        settings.putAll(Map.of("enable.auto.commit", false, "bootstrap.servers", bootstrap, "group.protocol", "consumer"));
        while (goesOn(ENDING, 500)) {
            long until = comesAndGoes ? System.currentTimeMillis() + 20_000 + random.nextInt(40_000) : Long.MAX_VALUE;
            try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(read));
                while (ENDING.getCount() > 0 && (System.currentTimeMillis() < until || RESTING.getCount() == 0)) {
                    poll(consumer);
                }
            } catch (RuntimeException error) {
                failed("reading", error);
            }
        }
    }

    private static void poll(KafkaConsumer<byte[], byte[]> consumer) {
        var records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (var record : records) {
            positions.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            String text = new String(record.value(), ISO_8859_1);
            long number = Long.parseLong(text.substring(0, text.indexOf(':')));
            if (number % PARTITIONS != record.partition() || !java.util.Arrays.equals(record.value(), content(number))) {
                say("V " + record.topic() + "-" + record.partition() + " has at " + record.offset() + " what nobody sent");
            }
        }
        say("R " + records.count());
        try {
            consumer.commitSync(positions);
            var line = new StringBuilder("C");
            positions.forEach((place, at) -> line.append(' ').append(place.partition()).append(':').append(at.offset()));
            say(line.toString());
        } catch (RuntimeException error) { // the node is away, or the partitions are another member's now
            failed("committing", error);
        }
    }

    private static void administer(Random random) {
        for (int count = 1; goesOn(RESTING, 4000 + random.nextInt(8000)); count++) {
            change("N", count);
            if (count > KEPT_TOPICS) {
                change("D", count - KEPT_TOPICS);
            }
        }
    }

    private static void change(String sign, int number) {
        String topic = name + "-admin-" + number;
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            if (sign.equals("N")) {
                admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            } else {
                admin.deleteTopics(List.of(topic)).all().get();
            }
            say(sign + " " + topic);
        } catch (Exception error) {
            failed("administering", error);
            say("X " + topic);
        }
    }
}
