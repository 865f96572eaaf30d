import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients against a broker: `java Clients HOST:PORT SCENARIO...`. A scenario prints what a client sees, and
 * nothing that differs between two runs, so that two brokers are alike when what is printed is the same.
 */
public final class Clients {
    private static final Duration SOON = Duration.ofMillis(100);
    private static String bootstrap;
    private static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        try (Admin made = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin = made;
            for (int i = 1; i < args.length; i++) {
                say("== " + args[i]);
                run(args[i]);
            }
        }
    }

    private static void run(String scenario) throws Exception {
        switch (scenario) {
            case "records" -> records();
            case "transactions" -> transactions();
            case "fencing" -> fencing();
            case "exactly-once-classic" -> exactlyOnce("classic");
            case "exactly-once-consumer" -> exactlyOnce("consumer");
            case "group-cooperative" -> group("cooperative", classic("CooperativeStickyAssignor"));
            case "group-range" -> group("range", classic("RangeAssignor"));
            case "group-consumer" -> group("consumer", Map.of("group.protocol", "consumer"));
            case "static-members" -> staticMembers();
            case "patterns" -> patterns();
            case "offsets" -> offsets();
            case "hanging" -> hanging();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    // ---- what a record goes through

    private static void records() throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            String topic = create("records-" + codec, 2);
            List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                byte[] value = i == 7 ? null : i == 8 ? new byte[0] : i == 9 ? new byte[200_000] : bytes("value " + i);
                var record = new ProducerRecord<>(topic, i % 2, 1_000L + i, i % 3 == 0 ? null : bytes("k" + i), value);
                for (int h = 0; h < i % 4; h++) {
                    record.headers().add("h" + h, h == 2 ? null : bytes("of " + i));
                }
                sent.add(record);
            }
            List<String> answered = new ArrayList<>();
            try (var producer = producer(Map.of("compression.type", codec, "linger.ms", "20"))) {
                List<Future<RecordMetadata>> answers = new ArrayList<>();
                sent.forEach(record -> answers.add(producer.send(record)));
                for (var answer : answers) {
                    RecordMetadata got = answer.get();
                    answered.add(got.partition() + "@" + got.offset() + "/" + got.timestamp());
                }
            }
            say(codec + " answered " + answered);
            List<String> read = new ArrayList<>();
            try (var consumer = consumer(Map.of("check.crcs", "true"))) {
                for (var record : readAll(consumer, topic, 2)) {
                    read.add(text(record.partition(), record.timestamp(), record.key(), record.value(), record.headers()));
                }
            }
            List<String> expected = new ArrayList<>();
            sent.forEach(r -> expected.add(text(r.partition(), r.timestamp(), r.key(), r.value(), r.headers())));
            Collections.sort(read);
            Collections.sort(expected);
            say(codec + " read what was sent: " + read.equals(expected));
        }
        try (var producer = producer(Map.of())) {
            say("just small enough: " + failure(() -> producer.send(new ProducerRecord<>("records-none", new byte[1_048_000])).get()));
            try (var big = producer(Map.of("max.request.size", "3000000"))) {
                say("too large: " + failure(() -> big.send(new ProducerRecord<>("records-none", new byte[2_000_000])).get()));
            }
        }
    }

    private static String text(int partition, long timestamp, byte[] key, byte[] value, Iterable<Header> headers) {
        StringBuilder all = new StringBuilder();
        headers.forEach(h -> all.append(h.key()).append('=').append(string(h.value())).append(','));
        return partition + " " + timestamp + " " + string(key) + " " + string(value) + " " + all;
    }

    // ---- transactions

    private static void transactions() throws Exception {
        String topic = create("transactions", 2);
        try (var producer = producer(Map.of("transactional.id", "t1"))) {
            producer.initTransactions();
            for (int round = 0; round < 6; round++) {
                producer.beginTransaction();
                for (int i = 0; i < 10; i++) {
                    producer.send(new ProducerRecord<>(topic, i % 2, null, bytes("round " + round + " " + i)));
                }
                producer.flush(); // else an abort would not send what waits
                if (round % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.commitTransaction();
            say("empty transaction committed");
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, bytes("open"))).get();
            try (var plain = producer(Map.of())) {
                say("after it " + plain.send(new ProducerRecord<>(topic, 0, null, bytes("plain"))).get().offset());
            }
            ends(topic);
            show(topic, "read_committed");
            show(topic, "read_uncommitted");
            producers(topic);
            say("t1 " + admin.describeTransactions(List.of("t1")).description("t1").get().state());
            producer.abortTransaction();
        }
        eventually("t1 ended", () -> state("t1").equals("COMPLETE_ABORT"));
        ends(topic);
        show(topic, "read_committed");
        try (var producer = producer(Map.of("transactional.id", "t1"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, null, bytes("left open"))).get();
            producer.close(Duration.ZERO);
        }
        try (var producer = producer(Map.of("transactional.id", "t1"))) {
            producer.initTransactions(); // ends what its predecessor left
            ends(topic);
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, null, bytes("last"))).get();
            producer.commitTransaction();
        }
        show(topic, "read_committed");
    }

    private static void fencing() throws Exception {
        String topic = create("fencing", 1);
        try (var first = producer(Map.of("transactional.id", "f1")); var second = producer(Map.of("transactional.id", "f1"))) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(topic, bytes("of the first"))).get();
            second.initTransactions();
            say("first sends: " + failure(() -> first.send(new ProducerRecord<>(topic, bytes("late"))).get()));
            say("first commits: " + failure(first::commitTransaction));
            second.beginTransaction();
            second.send(new ProducerRecord<>(topic, bytes("of the second"))).get();
            second.commitTransaction();
        }
        try (var timed = producer(Map.of("transactional.id", "f2", "transaction.timeout.ms", "1000"))) {
            timed.initTransactions();
            timed.beginTransaction();
            timed.send(new ProducerRecord<>(topic, bytes("timed out"))).get();
            eventually("f2 timed out", () -> state("f2").equals("COMPLETE_ABORT"));
            say("timed out, commits: " + failure(timed::commitTransaction));
        }
        try (var fenced = producer(Map.of("transactional.id", "f3"))) {
            fenced.initTransactions();
            admin.fenceProducers(List.of("f3")).all().get();
            fenced.beginTransaction();
            say("fenced by the admin, sends: " + failure(() -> fenced.send(new ProducerRecord<>(topic, bytes("x"))).get()));
        }
        say("refused: " + failure(() -> {
            try (var slow = producer(Map.of("transactional.id", "f4", "transaction.timeout.ms", "999999999"))) {
                slow.initTransactions();
            }
        }));
        show(topic, "read_committed");
        var listed = new TreeMap<String, String>();
        admin.listTransactions().all().get().forEach(t -> listed.put(t.transactionalId(), t.state().toString()));
        listed.keySet().removeIf(id -> !id.startsWith("f"));
        say("transactions " + listed);
    }

    /** A transaction that nobody will end, found and aborted as an operator would. */
    private static void hanging() throws Exception {
        String topic = create("hanging", 1);
        var producer = producer(Map.of("transactional.id", "hanging"));
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(topic, bytes("x"))).get();
        var partition = new TopicPartition(topic, 0);
        ProducerState active = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().get(0);
        say("open since " + active.currentTransactionStartOffset().getAsLong() + ", last sequence " + active.lastSequence());
        var spec = new AbortTransactionSpec(partition, active.producerId(), (short) active.producerEpoch(), -1);
        admin.abortTransaction(spec).all().get();
        ends(topic);
        say("none open: " + admin.describeProducers(List.of(partition)).partitionResult(partition).get()
            .activeProducers().get(0).currentTransactionStartOffset().isEmpty());
        producer.close(Duration.ZERO);
        admin.fenceProducers(List.of("hanging")).all().get();
    }

    private static String state(String transactionalId) {
        try {
            return admin.describeTransactions(List.of(transactionalId)).description(transactionalId).get().state().name();
        } catch (InterruptedException | ExecutionException error) {
            return error.toString();
        }
    }

    private static void ends(String topic) throws Exception {
        for (String level : List.of("read_committed", "read_uncommitted")) {
            try (var consumer = consumer(Map.of("isolation.level", level))) {
                List<TopicPartition> all = partitions(consumer, topic);
                say(level + " from " + new TreeMap<>(byNumber(consumer.beginningOffsets(all)))
                    + " to " + new TreeMap<>(byNumber(consumer.endOffsets(all))));
            }
        }
    }

    private static void show(String topic, String level) throws Exception {
        try (var consumer = consumer(Map.of("isolation.level", level))) {
            var seen = new TreeMap<Integer, List<String>>();
            for (var record : readAll(consumer, topic, partitions(consumer, topic).size())) {
                seen.computeIfAbsent(record.partition(), key -> new ArrayList<>()).add(record.offset() + ":" + string(record.value()));
            }
            say(level + " " + seen);
        }
    }

    private static void producers(String topic) throws Exception {
        var partition = new TopicPartition(topic, 0);
        for (ProducerState each : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
            say("producer with sequence " + each.lastSequence() + ", open from " + each.currentTransactionStartOffset());
        }
    }

    // ---- read, process, write

    private static void exactlyOnce(String protocol) throws Exception {
        String in = create("in-" + protocol, 3);
        String out = create("out-" + protocol, 3);
        String group = "processors-" + protocol;
        try (var producer = producer(Map.of())) {
            for (int i = 0; i < 300; i++) {
                producer.send(new ProducerRecord<>(in, i % 3, null, bytes("" + i)));
            }
        }
        AtomicInteger done = new AtomicInteger();
        // The first is left in the middle of a transaction; the second, under the same id, ends it; the third goes beside it.
        var first = new Processor(protocol, group, in, out, "left", 4, done);
        first.start();
        first.join();
        var second = new Processor(protocol, group, in, out, "left", Integer.MAX_VALUE, done);
        var third = new Processor(protocol, group, in, out, "beside", Integer.MAX_VALUE, done);
        second.start();
        third.start();
        eventually("all processed", () -> committed(group, in) == 300);
        second.stop = third.stop = true;
        second.join();
        third.join();
        try (var consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            Set<String> different = new HashSet<>();
            int count = 0;
            for (var record : readAll(consumer, out, 3)) {
                different.add(string(record.value()));
                count++;
            }
            say("written " + count + ", different " + different.size());
        }
    }

    private static long committed(String group, String topic) {
        try {
            return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().entrySet().stream()
                .filter(each -> each.getKey().topic().equals(topic)).mapToLong(each -> each.getValue().offset()).sum();
        } catch (InterruptedException | ExecutionException error) {
            return -1;
        }
    }

    private static final class Processor extends Thread {
        private final String in;
        private final String out;
        private final int transactions;
        private final Map<String, String> reading;
        private final Map<String, String> writing;
        private final AtomicInteger done;
        volatile boolean stop;

        Processor(String protocol, String group, String in, String out, String id, int transactions, AtomicInteger done) {
            this.in = in;
            this.out = out;
            this.transactions = transactions;
            this.done = done;
            reading = Map.of("group.protocol", protocol, "group.id", group, "max.poll.records", "15",
                "isolation.level", "read_committed");
            writing = Map.of("transactional.id", group + "-" + id);
        }

        @Override
        public void run() {
            var producer = producer(writing);
            try (var consumer = consumer(reading)) {
                producer.initTransactions();
                consumer.subscribe(List.of(in));
                for (int number = 0; !stop; ) {
                    var batch = consumer.poll(SOON);
                    if (batch.isEmpty()) {
                        continue;
                    }
                    Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                    producer.beginTransaction();
                    for (var record : batch) {
                        producer.send(new ProducerRecord<>(out, record.partition(), null, record.value()));
                        next.put(new TopicPartition(in, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    }
                    number++;
                    if (number == transactions) {
                        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                        producer.flush();
                        producer.close(Duration.ZERO);
                        return;
                    }
                    try {
                        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                        if (number % 3 == 0) {
                            throw new CommitFailedException("every third is given up");
                        }
                        producer.commitTransaction();
                        done.incrementAndGet();
                    } catch (CommitFailedException error) {
                        producer.abortTransaction();
                        rewind(consumer);
                    }
                }
            } finally {
                producer.close(Duration.ZERO);
            }
        }

        private static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
            var committed = consumer.committed(consumer.assignment());
            for (TopicPartition each : consumer.assignment()) {
                OffsetAndMetadata offset = committed.get(each);
                if (offset == null) {
                    consumer.seekToBeginning(List.of(each));
                } else {
                    consumer.seek(each, offset.offset());
                }
            }
        }
    }

    // ---- groups

    private static Map<String, String> classic(String assignor) {
        String name = "org.apache.kafka.clients.consumer." + assignor;
        return Map.of("group.protocol", "classic", "partition.assignment.strategy", name, "heartbeat.interval.ms", "300");
    }

    private static void group(String name, Map<String, String> settings) throws Exception {
        String topic = create("group-" + name, 6);
        Map<Integer, Integer> seen = new ConcurrentHashMap<>();
        var first = new Member(name, topic, settings, seen);
        first.start();
        eventually("one has six", () -> first.has.size() == 6);
        var second = new Member(name, topic, settings, seen);
        second.start();
        eventually("two have three", () -> first.has.size() == 3 && second.has.size() == 3);
        var third = new Member(name, topic, settings, seen);
        third.start();
        eventually("three have two", () -> List.of(first, second, third).stream().allMatch(each -> each.has.size() == 2));
        try (var producer = producer(Map.of())) {
            for (int i = 0; i < 120; i++) {
                producer.send(new ProducerRecord<>(topic, i % 6, null, bytes("" + i)));
            }
        }
        eventually("all read", () -> seen.size() == 120);
        var described = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
        say(described.groupState() + " " + described.type() + " " + described.members().size() + " members, "
            + described.partitionAssignor());
        second.leave();
        eventually("again three", () -> first.has.size() == 3 && third.has.size() == 3);
        first.leave();
        third.leave();
        say("read twice: " + seen.values().stream().filter(count -> count > 1).count() + ", lost: "
            + (first.lost.get() + second.lost.get() + third.lost.get()));
        say("committed " + committed(name, topic));
        if (name.equals("cooperative")) {
            say("the first gave away " + first.revokedBeforeLeaving + " partitions");
        }
        eventually("empty", () -> groupState(name).equals("EMPTY"));
        admin.deleteConsumerGroups(List.of(name)).all().get();
        say("after its deletion: " + groupState(name));
    }

    private static String groupState(String group) {
        try {
            return admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState().name();
        } catch (InterruptedException | ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        final Set<TopicPartition> has = ConcurrentHashMap.newKeySet();
        final AtomicInteger rebalances = new AtomicInteger();
        final AtomicInteger lost = new AtomicInteger();
        final Map<Integer, Integer> seen;
        volatile int revokedBeforeLeaving;
        volatile String ended = "";
        private volatile boolean leaving;
        private final KafkaConsumer<byte[], byte[]> consumer;

        Member(String group, String topic, Map<String, String> settings, Map<Integer, Integer> seen) {
            Map<String, String> all = new HashMap<>(settings);
            all.put("group.id", group);
            this.seen = seen;
            consumer = consumer(all);
            consumer.subscribe(List.of(topic), this);
        }

        @Override
        public void run() {
            try {
                while (!leaving) {
                    var batch = consumer.poll(SOON);
                    batch.forEach(record -> seen.merge(Integer.valueOf(string(record.value())), 1, Integer::sum));
                    if (!batch.isEmpty()) {
                        consumer.commitSync();
                    }
                }
            } catch (WakeupException stopped) {
                // asked to leave
            } catch (KafkaException error) {
                ended = error.getClass().getSimpleName();
            } finally {
                consumer.close();
            }
        }

        void leave() throws InterruptedException {
            leaving = true;
            join();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            has.addAll(partitions);
            rebalances.incrementAndGet();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(has::remove);
            if (!leaving) {
                revokedBeforeLeaving += partitions.size();
            }
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            partitions.forEach(has::remove);
            lost.addAndGet(partitions.size());
        }
    }

    private static void staticMembers() throws Exception {
        String topic = create("static", 4);
        for (String protocol : List.of("classic", "consumer")) {
            String group = "static-" + protocol;
            Map<String, String> one = new HashMap<>(Map.of("group.protocol", protocol, "group.instance.id", "one"));
            Map<String, String> two = new HashMap<>(Map.of("group.protocol", protocol, "group.instance.id", "two"));
            if (protocol.equals("classic")) {
                one.put("session.timeout.ms", "20000");
                two.put("session.timeout.ms", "20000");
            }
            Map<Integer, Integer> seen = new ConcurrentHashMap<>();
            var first = new Member(group, topic, one, seen);
            first.start();
            eventually(protocol + " first alone", () -> first.has.size() == 4);
            var second = new Member(group, topic, two, seen);
            second.start();
            eventually(protocol + " two each", () -> first.has.size() == 2 && second.has.size() == 2);
            int before = first.rebalances.get();
            Set<TopicPartition> had = Set.copyOf(second.has);
            second.leave(); // a static member that closes stays a member
            var again = new Member(group, topic, two, seen);
            again.start();
            eventually(protocol + " has the same again", () -> again.has.equals(had));
            say(protocol + " rebalances of the first meanwhile: " + (first.rebalances.get() - before));
            var twin = new Member(group, topic, two, seen);
            twin.start();
            eventually(protocol + " one of the twins ended", () -> !again.ended.isEmpty() || !twin.ended.isEmpty());
            say(protocol + " ended: the elder by '" + again.ended + "', the younger by '" + twin.ended + "'");
            for (var each : List.of(first, again, twin)) {
                each.leave();
            }
        }
    }

    private static void patterns() throws Exception {
        create("pattern-a", 1);
        create("pattern-b", 1);
        create("other", 1);
        try (var consumer = consumer(Map.of("group.id", "pattern-classic", "metadata.max.age.ms", "300"))) {
            consumer.subscribe(Pattern.compile("pattern-[a-z]"));
            eventually("java's own", () -> polled(consumer).equals(Set.of("pattern-a", "pattern-b")));
        }
        try (var consumer = consumer(Map.of("group.id", "pattern-consumer", "group.protocol", "consumer"))) {
            consumer.subscribe(new SubscriptionPattern("pattern-[a-z]"));
            eventually("the broker's", () -> polled(consumer).equals(Set.of("pattern-a", "pattern-b")));
            create("pattern-c", 1);
            eventually("a new one too", () -> polled(consumer).equals(Set.of("pattern-a", "pattern-b", "pattern-c")));
        }
        try (var consumer = consumer(Map.of("group.id", "pattern-bad", "group.protocol", "consumer"))) {
            consumer.subscribe(new SubscriptionPattern("(unclosed"));
            say("bad: " + failure(() -> {
                while (true) {
                    consumer.poll(SOON);
                }
            }));
        }
    }

    private static Set<String> polled(KafkaConsumer<byte[], byte[]> consumer) {
        consumer.poll(SOON);
        Set<String> topics = new TreeSet<>();
        consumer.assignment().forEach(each -> topics.add(each.topic()));
        return topics;
    }

    // ---- offsets

    private static void offsets() throws Exception {
        String topic = create("offsets", 1);
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer(Map.of())) {
            for (int i = 0; i < 100; i++) {
                producer.send(new ProducerRecord<>(topic, 0, 1_000_000L + i * 10L, null, bytes("" + i)));
            }
        }
        try (var consumer = consumer(Map.of("group.id", "offsets"))) {
            for (long time : new long[] {0, 1_000_455, 1_000_990, 1_000_991}) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
                say(time + " is at " + (found == null ? "none" : found.offset() + "/" + found.timestamp()));
            }
            consumer.assign(List.of(partition));
            consumer.seek(partition, 42);
            say("at 42: " + string(consumer.poll(Duration.ofSeconds(20)).iterator().next().value()));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(43, "with metadata")));
            say("committed " + consumer.committed(Set.of(partition)).get(partition).metadata());
            say("lag " + consumer.currentLag(partition).getAsLong());
        }
        for (var spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(), OffsetSpec.earliestLocal())) {
            var found = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
            say(spec.getClass().getSimpleName() + " " + found.offset() + "/" + found.timestamp());
        }
        say("deleted below " + admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(30)))
            .lowWatermarks().get(partition).get().lowWatermark());
        ends(topic);
        try (var consumer = consumer(Map.of("auto.offset.reset", "none"))) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 3);
            say("below the start: " + failure(() -> consumer.poll(Duration.ofSeconds(20))));
        }
        admin.alterConsumerGroupOffsets("offsets", Map.of(partition, new OffsetAndMetadata(77))).all().get();
        say("altered " + committed("offsets", topic));
        admin.deleteConsumerGroupOffsets("offsets", Set.of(partition)).all().get();
        say("deleted " + admin.listConsumerGroupOffsets("offsets").partitionsToOffsetAndMetadata().get());
        say("no such group: " + failure(() -> admin.deleteConsumerGroups(List.of("no-such-group")).all().get()));
    }

    // ---- clients and what they share

    private static KafkaProducer<byte[], byte[]> producer(Map<String, String> settings) {
        return new KafkaProducer<>(properties(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        all.putAll(settings);
        return new KafkaConsumer<>(properties(all), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Properties properties(Map<String, String> settings) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.putAll(settings);
        return all;
    }

    private static String create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    private static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> all = new ArrayList<>();
        consumer.partitionsFor(topic).forEach(each -> all.add(new TopicPartition(topic, each.partition())));
        return all;
    }

    private static List<ConsumerRecord<byte[], byte[]>> readAll(KafkaConsumer<byte[], byte[]> consumer, String topic, int count) {
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(new TopicPartition(topic, i));
        }
        consumer.assign(all);
        consumer.seekToBeginning(all);
        Map<TopicPartition, Long> ends = consumer.endOffsets(all);
        List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (all.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
            consumer.poll(SOON).forEach(read::add);
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not at " + ends + " in time");
            }
        }
        return read;
    }

    private static Map<Integer, Long> byNumber(Map<TopicPartition, Long> offsets) {
        Map<Integer, Long> all = new HashMap<>();
        offsets.forEach((partition, offset) -> all.put(partition.partition(), offset));
        return all;
    }

    private static void eventually(String what, BooleanSupplier condition) throws Exception {
        long deadline = System.nanoTime() + 90_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                say("NEVER: " + what);
                System.out.flush();
                Runtime.getRuntime().halt(3);
            }
            Thread.sleep(20);
        }
        say(what);
    }

    private interface Step {
        Object run() throws Exception;
    }

    private interface Silent {
        void run() throws Exception;
    }

    private static String failure(Step step) {
        try {
            step.run();
            return "no failure";
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            return cause.getClass().getSimpleName();
        }
    }

    private static String failure(Silent step) {
        return failure(() -> {
            step.run();
            return null;
        });
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    private static String string(byte[] bytes) {
        return bytes == null ? "null" : new String(bytes, UTF_8);
    }

    private static void say(String text) {
        System.out.println(text);
    }
}
