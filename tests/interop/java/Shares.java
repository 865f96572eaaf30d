import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's share consumer against a broker: `java Shares HOST:PORT SCENARIO...` prints what a member sees, and nothing that
 * differs between two runs. `java Shares HOST:PORT work TOPIC COUNT` accepts records one poll after the other, and prints each
 * delivery and each accepted record until it has accepted so many or is killed.
 */
public final class Shares {
    private static final Duration SOON = Duration.ofMillis(200);
    private static final long PATIENCE_MS = 30_000;
    private static String bootstrap;
    private static Admin admin;

    private Shares() {}

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        try (Admin made = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin = made;
            if (args[1].equals("work")) {
                work(args[2], Integer.parseInt(args[3]));
                return;
            }
            for (int i = 1; i < args.length; i++) {
                say("== " + args[i]);
                run(args[i]);
            }
        }
    }

    private static void run(String scenario) throws Exception {
        switch (scenario) {
            case "implicit" -> implicit();
            case "explicit" -> explicit();
            case "limit" -> limit();
            case "renewal" -> renewal();
            case "locks" -> locks();
            case "two-members" -> twoMembers();
            case "isolation" -> isolation();
            case "record-limit" -> recordLimit();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    // ---- the scenarios

    private static void implicit() throws Exception {
        String topic = prepare("java-implicit", Map.of());
        send(topic, 0, 10);
        try (var member = member(topic, Map.of())) {
            say("first " + shown(poll(member, 10)));
            say("lock " + member.acquisitionLockTimeoutMs());
            send(topic, 10, 15);
            say("more " + shown(poll(member, 5)));
            say("commit " + outcome(member.commitSync()));
            say("nothing to commit " + outcome(member.commitSync()));
            send(topic, 15, 20);
            say("closed with " + shown(poll(member, 5)));
        }
        lag(topic, 5);
        try (var member = member(topic, Map.of())) {
            say("what the close released " + shown(poll(member, 5)));
            say("subscribed to " + member.subscription());
        }
    }

    private static void explicit() throws Exception {
        String topic = prepare("java-explicit", Map.of());
        send(topic, 0, 9);
        try (var member = member(topic, explicitly())) {
            var calls = new TreeSet<String>();
            member.setAcknowledgementCommitCallback((offsets, error) ->
                offsets.forEach((partition, each) -> calls.add(partition.partition() + " " + new TreeSet<>(each) + " " + name(error))));
            var records = poll(member, 9);
            say("first " + shown(records));
            for (var record : records) {
                if (record.offset() < 8) {
                    member.acknowledge(record, AcknowledgeType.forId((byte) (1 + record.offset() % 3)));
                }
            }
            say("poll with one undecided: " + failure(() -> member.poll(SOON)));
            member.acknowledge(records.get(8));
            say("commit " + outcome(member.commitSync()));
            var again = poll(member, 3);
            say("again " + shown(again));
            say("a record of before: " + failure(() -> member.acknowledge(records.get(0))));
            again.forEach(member::acknowledge);
            member.commitAsync();
            until(() -> {
                member.poll(SOON);
                return calls.size() >= 2;
            });
            say("called with " + calls);
        }
        lag(topic, 0);
        send(topic, 9, 12);
        try (var member = member(topic, explicitly())) {
            say("closed without a decision on " + shown(poll(member, 3)));
        }
        try (var member = member(topic, explicitly())) {
            var records = poll(member, 3);
            say("released by that " + shown(records));
            records.forEach(each -> member.acknowledge(each, AcknowledgeType.REJECT));
        }
        lag(topic, 0);
    }

    private static void limit() throws Exception {
        String topic = prepare("java-limit", Map.of("share.delivery.count.limit", "3"));
        send(topic, 0, 4);
        try (var member = member(topic, explicitly())) {
            for (int round = 0; round < 3; round++) {
                say("delivered " + shown(decide(member, 4, AcknowledgeType.RELEASE)));
            }
            send(topic, 4, 6);
            say("after the limit " + shown(decide(member, 2, AcknowledgeType.ACCEPT)));
        }
        lag(topic, 0);
    }

    private static void renewal() throws Exception {
        String topic = prepare("java-renewal", Map.of("share.record.lock.duration.ms", "3000"));
        send(topic, 0, 3);
        try (var member = member(topic, explicitly()); var other = member(topic, explicitly())) {
            var records = poll(member, 3);
            say("first " + shown(records));
            long until = System.currentTimeMillis() + 5_000;
            int renewed = 0;
            while (System.currentTimeMillis() < until) {
                for (var record : records) {
                    member.acknowledge(record, AcknowledgeType.RENEW);
                }
                var done = outcome(member.commitSync());
                if (!done.equals("{" + topic + "-0=done}")) {
                    say("renewal " + renewed + " " + done);
                }
                renewed++;
                records = poll(member, 3);
                if (!other.poll(SOON).isEmpty()) {
                    say("the other got some");
                }
            }
            say("renewed several times: " + (renewed > 2) + ", still " + shown(records));
            records.forEach(member::acknowledge);
            say("commit " + outcome(member.commitSync()));
        }
        lag(topic, 0);
    }

    private static void locks() throws Exception {
        String topic = prepare("java-locks", Map.of("share.record.lock.duration.ms", "2000"));
        send(topic, 0, 3);
        try (var member = member(topic, explicitly()); var other = member(topic, explicitly())) {
            var records = poll(member, 3);
            say("first " + shown(records));
            var theirs = poll(other, 3);
            say("when the locks had ended " + shown(theirs));
            records.forEach(member::acknowledge);
            say("too late " + outcome(member.commitSync()));
            theirs.forEach(other::acknowledge);
            say("in time " + outcome(other.commitSync()));
        }
        lag(topic, 0);
    }

    private static void twoMembers() throws Exception {
        String topic = prepare("java-two-members", Map.of());
        var seen = new TreeMap<Long, Integer>();
        var gotSome = new boolean[2];
        try (var first = member(topic, recordLimit("5")); var second = member(topic, recordLimit("5"))) {
            until(() -> {
                first.poll(SOON);
                second.poll(SOON);
                return members(topic) == 2;
            });
            send(topic, 0, 100);
            var both = List.of(first, second);
            until(() -> {
                for (int at = 0; at < 2; at++) {
                    for (var record : both.get(at).poll(SOON)) {
                        seen.merge(record.offset(), 1, Integer::sum);
                        gotSome[at] = true;
                        both.get(at).acknowledge(record);
                    }
                    both.get(at).commitSync();
                }
                return seen.size() == 100;
            });
        }
        say("records " + seen.size() + ", each once: " + seen.values().stream().allMatch(each -> each == 1));
        say("both worked: " + (gotSome[0] && gotSome[1]));
        lag(topic, 0);
    }

    private static void isolation() throws Exception {
        for (String level : List.of("read_committed", "read_uncommitted")) {
            String topic = prepare("java-" + level.replace('_', '-'), Map.of("share.isolation.level", level));
            send(topic, 0, 2);
            try (var producer = producer(Map.of("transactional.id", topic))) {
                producer.initTransactions();
                for (int round = 0; round < 4; round++) {
                    producer.beginTransaction();
                    for (int i = 0; i < 3; i++) {
                        producer.send(new ProducerRecord<>(topic, "round " + round)).get();
                    }
                    if (round % 2 == 0) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                }
            }
            send(topic, 2, 4);
            int wanted = level.equals("read_committed") ? 10 : 16;
            try (var member = member(topic, Map.of())) {
                for (var record : poll(member, wanted)) {
                    say(level + " " + record.offset() + " " + record.value());
                }
                say("commit " + outcome(member.commitSync()));
                say("no more: " + member.poll(Duration.ofSeconds(1)).isEmpty());
            }
            lag(topic, 0);
        }
    }

    private static void recordLimit() throws Exception {
        String topic = prepare("java-record-limit", Map.of());
        send(topic, 0, 10);
        try (var first = member(topic, recordLimit("3"))) {
            var records = poll(first, 3);
            say("first " + shown(records));
            try (var second = member(topic, recordLimit("4"))) {
                var others = poll(second, 4);
                say("second " + shown(others));
                others.forEach(second::acknowledge);
                say("commit " + outcome(second.commitSync()));
            }
            records.forEach(each -> first.acknowledge(each, AcknowledgeType.RELEASE));
            say("commit " + outcome(first.commitSync()));
            var rest = poll(first, 3);
            say("rest " + shown(rest));
            rest.forEach(first::acknowledge);
        }
        lag(topic, 3);
    }

    // ---- work under kills

    private static void work(String topic, int count) throws Exception {
        var accepted = new TreeSet<String>();
        try (var member = member(topic, explicitly())) {
            while (accepted.size() < count) {
                var records = new ArrayList<ConsumerRecord<String, String>>();
                member.poll(SOON).forEach(records::add);
                for (var record : records) {
                    say("got " + record.value() + " " + record.deliveryCount().get());
                    member.acknowledge(record);
                }
                Map<TopicIdPartition, Optional<KafkaException>> done = member.commitSync();
                for (var record : records) {
                    boolean isDone = done.entrySet().stream().anyMatch(each ->
                        each.getKey().partition() == record.partition() && each.getValue().isEmpty());
                    if (isDone) {
                        accepted.add(record.value());
                        say("accepted " + record.value());
                    }
                }
            }
        }
    }

    // ---- what they share

    private static String prepare(String topic, Map<String, String> configs) throws Exception {
        try {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
        var all = new HashMap<>(configs);
        all.put("share.auto.offset.reset", "earliest");
        var ops = new ArrayList<AlterConfigOp>();
        all.forEach((name, value) -> ops.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, topic), ops)).all().get();
        return topic;
    }

    private static KafkaProducer<String, String> producer(Map<String, String> more) {
        var settings = new HashMap<String, Object>(more);
        settings.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    /** Each record is a batch of its own. */
    private static void send(String topic, int first, int end) throws Exception {
        try (var producer = producer(Map.of("linger.ms", "0"))) {
            for (int i = first; i < end; i++) {
                producer.send(new ProducerRecord<>(topic, "" + i)).get();
            }
        }
    }

    private static Map<String, String> explicitly() {
        return Map.of("share.acknowledgement.mode", "explicit");
    }

    private static Map<String, String> recordLimit(String count) {
        return Map.of("share.acknowledgement.mode", "explicit", "share.acquire.mode", "record_limit", "max.poll.records", count);
    }

    /** A member of the group with the name of the topic. */
    private static KafkaShareConsumer<String, String> member(String topic, Map<String, String> more) {
        var settings = new HashMap<String, Object>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", topic);
        var made = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    /** Poll until there are so many records, which one poll after another accepts in implicit mode; none is lost by that. */
    private static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> member, int count) throws Exception {
        var found = new ArrayList<ConsumerRecord<String, String>>();
        until(() -> {
            ConsumerRecords<String, String> some = member.poll(SOON);
            some.forEach(found::add);
            return found.size() >= count;
        });
        return found;
    }

    /** Poll until there are so many records, and acknowledge those of each poll: near the limit of deliveries, they come one by one. */
    private static List<ConsumerRecord<String, String>> decide(
        KafkaShareConsumer<String, String> member, int count, AcknowledgeType type) throws Exception {
        var found = new ArrayList<ConsumerRecord<String, String>>();
        until(() -> {
            for (var record : member.poll(SOON)) {
                found.add(record);
                member.acknowledge(record, type);
            }
            var done = outcome(member.commitSync());
            if (done.contains("Exception")) {
                say(done);
            }
            return found.size() >= count;
        });
        return found;
    }

    private static int members(String group) throws Exception {
        return admin.describeShareGroups(List.of(group)).all().get().get(group).members().size();
    }

    /** Say how many records the group has before it, when they are as many as expected or patience ends, and without members. */
    private static void lag(String group, long wanted) throws Exception {
        var partition = new TopicPartition(group, 0);
        var spec = Map.of(group, new ListShareGroupOffsetsSpec().topicPartitions(List.of(partition)));
        var found = new ArrayList<String>();
        within(10_000, () -> {
            var offset = admin.listShareGroupOffsets(spec).partitionsToOffsetInfo(group).get().get(partition);
            found.add(offset == null ? "unknown" : "" + offset.lag().get());
            return found.get(found.size() - 1).equals("" + wanted);
        });
        say("lag " + found.get(found.size() - 1));
        until(() -> members(group) == 0);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void until(Condition condition) throws Exception {
        if (!within(PATIENCE_MS, condition)) {
            throw new IllegalStateException("waited for too long");
        }
    }

    private static boolean within(long patienceMs, Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + patienceMs;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) {
                return false;
            }
            Thread.sleep(20);
        }
        return true;
    }

    private static String failure(Action action) {
        try {
            action.run();
            return "done";
        } catch (Exception error) {
            return error.getClass().getSimpleName() + " " + error.getMessage();
        }
    }

    private static String name(Throwable error) {
        return error == null ? "done" : error.getClass().getSimpleName();
    }

    private static String outcome(Map<TopicIdPartition, Optional<KafkaException>> results) {
        var found = new TreeMap<String, String>();
        results.forEach((partition, error) -> found.put(partition.topicPartition().toString(), name(error.orElse(null))));
        return found.toString();
    }

    private static String shown(List<ConsumerRecord<String, String>> records) {
        var found = new ArrayList<String>();
        records.forEach(each -> found.add(each.offset() + ":" + each.value() + "#" + each.deliveryCount().get()));
        return found.toString();
    }

    private static void say(String line) {
        System.out.write((line + "\n").getBytes(UTF_8), 0, (line + "\n").getBytes(UTF_8).length);
        System.out.flush();
    }
}
