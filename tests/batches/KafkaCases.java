import java.io.*;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.storage.internals.log.*;

/**
 * Writes what Apache Kafka makes of records and batches, as JSON lines. With the jars of org.apache.kafka:kafka_2.13:4.3.1
 * in lib, from the root of the repository:
 *   java -cp 'lib/*' tests/batches/KafkaCases.java codecs | gzip -9n > tests/batches/data/kafka_codecs.jsonl.gz
 *   python -m tests.batches.cases | java -cp 'lib/*' tests/batches/KafkaCases.java validation \
 *     | gzip -9n > tests/batches/data/kafka_validation.jsonl.gz
 */
public class KafkaCases {
    static final long NOW_MS = 1_700_000_000_000L;
    static final long STORED_OFFSET = 5000;
    static final int STORED_EPOCH = 6;

    public static void main(String[] args) throws IOException {
        if (args[0].equals("codecs")) {
            codecs();
        } else {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = in.readLine()) != null; ) System.out.println(validated(line.split("\t", -1)));
        }
    }

    static void codecs() {
        Object[][] wanted = {
            {"gzip", null}, {"gzip", 1}, {"gzip", 9}, {"snappy", null},
            {"lz4", null}, {"lz4", 1}, {"lz4", 17}, {"zstd", null}, {"zstd", -7}, {"zstd", 19},
        };
        for (Object[] codec : wanted) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), (byte) 2,
                compression((String) codec[0], (Integer) codec[1]), TimestampType.CREATE_TIME, 0L);
            for (int i = 0; i < 100; i++) {
                Header[] headers = {new RecordHeader("n", ("" + i).getBytes()), new RecordHeader("null", (byte[]) null)};
                builder.append(NOW_MS + 7 * i - i % 5 * 100, i % 4 == 0 ? null : ("key-" + i % 9).getBytes(),
                    i % 11 == 0 ? null : String.format("%04d", i).repeat(700).getBytes(), i % 3 == 0 ? headers : new Header[0]);
            }
            System.out.printf("{\"codec\":\"%s\",\"level\":%s,\"hex\":\"%s\"}%n", codec[0], codec[1], hex(builder.build().buffer()));
        }
    }

    static Compression compression(String name, Integer level) {
        switch (name) {
            case "none": return Compression.NONE;
            case "gzip": return level == null ? Compression.gzip().build() : Compression.gzip().level(level).build();
            case "snappy": return Compression.snappy().build();
            case "lz4": return level == null ? Compression.lz4().build() : Compression.lz4().level(level).build();
            case "zstd": return level == null ? Compression.zstd().build() : Compression.zstd().level(level).build();
            default: throw new IllegalArgumentException(name);
        }
    }

    /** The name of a case, its version, its rules as JSON and one by one, and its bytes: with Kafka's answer. */
    static String validated(String[] fields) {
        StringBuilder row = new StringBuilder("{\"name\":" + quoted(fields[0]) + ",\"version\":" + fields[1]
            + ",\"rules\":" + fields[2] + ",\"hex\":\"" + fields[9] + "\"");
        try {
            LogValidator.ValidationResult result = validate(fields);
            row.append(",\"error_code\":0,\"max_timestamp\":").append(result.maxTimestampMs());
            row.append(",\"stored\":\"").append(hex(result.validatedRecords().buffer())).append("\"");
        } catch (RuntimeException refused) {
            RuntimeException cause = refused;
            List<String> errors = new ArrayList<>();
            if (refused instanceof RecordValidationException) {
                cause = ((RecordValidationException) refused).invalidException();
                for (ProduceResponse.RecordError error : ((RecordValidationException) refused).recordErrors())
                    errors.add("[" + error.batchIndex + "," + quoted(error.message) + "]");
            }
            row.append(",\"error_code\":").append(Errors.forException(cause).code());
            row.append(",\"message\":").append(quoted("" + cause.getMessage())).append(",\"record_errors\":").append(errors);
        }
        return row + "}";
    }

    static LogValidator.ValidationResult validate(String[] fields) {
        boolean compacted = fields[3].equals("True");
        TimestampType timestampType = TimestampType.forName(fields[4]);
        long beforeMaxMs = Long.parseLong(fields[5]), afterMaxMs = Long.parseLong(fields[6]);
        int maxMessageBytes = Integer.parseInt(fields[8]);
        byte[] bytes = HexFormat.of().parseHex(fields[9]);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
        ProduceRequest.validateRecords(Short.parseShort(fields[1]), records);
        // What a log looks at before its validator does, in its order.
        int validBytes = 0;
        CompressionType source = CompressionType.NONE;
        for (MutableRecordBatch batch : records.batches()) {
            if (batch.baseOffset() != 0) throw new InvalidRecordException("base offset");
            if (batch.sizeInBytes() > maxMessageBytes) throw new RecordTooLargeException("size");
            if (!batch.isValid()) throw new CorruptRecordException("crc");
            validBytes += batch.sizeInBytes();
            source = batch.compressionType();
        }
        Compression target = fields[7].isEmpty() ? Compression.of(source).build() : compression(fields[7], null);
        LogValidator validator = new LogValidator(
            MemoryRecords.readableRecords(ByteBuffer.wrap(Arrays.copyOf(bytes, validBytes))), new TopicPartition("t", 0), clock(),
            source, target, compacted, (byte) 2, timestampType, beforeMaxMs, afterMaxMs, STORED_EPOCH, AppendOrigin.CLIENT);
        LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(STORED_OFFSET), proxy(LogValidator.MetricsRecorder.class, null), BufferSupplier.NO_CACHING);
        if (result.messageSizeMaybeChanged() && result.validatedRecords().sizeInBytes() > maxMessageBytes)
            throw new RecordTooLargeException("size in the new codec");
        return result;
    }

    static Time clock() {
        return proxy(Time.class, NOW_MS);
    }

    /** An object whose every method gives the same answer. */
    static <T> T proxy(Class<T> type, Object answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> answer));
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
