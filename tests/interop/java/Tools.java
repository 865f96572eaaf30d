import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's tools in one JVM, one after the other. A line of the input is a class and its arguments, each in base64; the answer is
 * a line with the exit code, and what was printed to both outputs, in base64.
 */
public final class Tools {
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;
    }

    private static Integer code;
    private static byte[] out;
    private static byte[] err;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            for (int at = 0; at < words.length; at++) {
                words[at] = new String(Base64.getDecoder().decode(words[at].substring(1)));
            }
            run(words);
            Base64.Encoder encoder = Base64.getEncoder();
            answers.println(code + " -" + encoder.encodeToString(out) + " -" + encoder.encodeToString(err));
            answers.flush();
        }
    }

    private static void run(String[] words) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(complained, true));
        code = null;
        Exit.Procedure exit = (status, message) -> {
            // A tool may catch what ends it here, and print that: what it has printed so far is all that counts.
            if (code == null) {
                code = status;
                out = printed.toByteArray();
                err = complained.toByteArray();
            }
            throw new Ended();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        String[] arguments = new String[words.length - 1];
        System.arraycopy(words, 1, arguments, 0, arguments.length);
        int status = 0;
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                System.err.println("Exception in thread \"main\" " + thrown.getCause());
                status = 1;
            }
        }
        if (code == null) {
            code = status;
            out = printed.toByteArray();
            err = complained.toByteArray();
        }
    }
}
