import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.metadata.authorizer.*;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.*;

/**
 * Writes what Apache Kafka's StandardAuthorizer decides for random ACLs, as JSON lines: data/authorizer.jsonl.gz.
 * With the jars of org.apache.kafka:kafka_2.13:4.3.1 in lib:
 *   java -cp 'lib/*' AuthorizerCases.java | gzip -9n > data/authorizer.jsonl.gz
 */
public class AuthorizerCases {
    static final Random random = new Random(431);
    static final String[] NAMES = {
        "a", "ab", "abc", "abd", "abcd", "b", "ba", "ab-1", "hardcode", "hard", "h", "é", "éa", "kafka-cluster", "orders", "orders.eu", "or"
    };
    static final String[] USERS = {"User:alice", "User:bob", "Group:alice", "User:a:b"};
    static final String[] HOSTS = {"10.0.0.1", "10.0.0.2", "::1"};
    static final ResourceType[] TYPES = {ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER};
    static final AclOperation[] OPERATIONS = AclOperation.values();

    @SafeVarargs
    static <T> T any(T... items) {
        return items[random.nextInt(items.length)];
    }

    static AclOperation operation() {
        return random.nextInt(3) == 0 ? any(OPERATIONS) : any(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE,
            AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS, AclOperation.DELETE, AclOperation.ALTER);
    }

    static StandardAcl acl(int denyPercent) {
        boolean prefixed = random.nextInt(2) == 0;
        AclOperation operation = random.nextInt(4) == 0 ? AclOperation.ALL : operation();
        while (operation == AclOperation.UNKNOWN || operation == AclOperation.ANY) operation = operation();
        return new StandardAcl(any(TYPES), random.nextInt(6) == 0 ? "*" : any(NAMES), prefixed ? PatternType.PREFIXED : PatternType.LITERAL,
            random.nextInt(4) == 0 ? "User:*" : any(USERS),
            random.nextInt(2) == 0 ? "*" : any("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "::1"),
            operation, random.nextInt(100) < denyPercent ? AclPermissionType.DENY : AclPermissionType.ALLOW);
    }

    static String text(String value) {
        return value == null ? "null" : "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static String row(Object... items) {
        StringJoiner joined = new StringJoiner(",", "[", "]");
        for (Object item : items) joined.add(item instanceof String s ? text(s) : String.valueOf(item));
        return joined.toString();
    }

    static String row(StandardAcl acl) {
        return row(acl.resourceType().code(), acl.resourceName(), acl.patternType().code(), acl.principal(), acl.host(),
            acl.operation().code(), acl.permissionType().code());
    }

    static AuthorizableRequestContext context(String user, String host) throws Exception {
        InetAddress address = InetAddress.getByName(host);
        KafkaPrincipal principal = new KafkaPrincipal(user.substring(0, user.indexOf(':')), user.substring(user.indexOf(':') + 1));
        return new AuthorizableRequestContext() {
            public String listenerName() { return "L"; }
            public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
            public KafkaPrincipal principal() { return principal; }
            public InetAddress clientAddress() { return address; }
            public int requestType() { return 3; }
            public int requestVersion() { return 0; }
            public String clientId() { return ""; }
            public int correlationId() { return 0; }
        };
    }

    /** The rule behind a decision, as the audit log would have it; the method that finds it is private. */
    static String rule(StandardAuthorizer authorizer, AuthorizableRequestContext context, Action action) throws Exception {
        Field field = StandardAuthorizer.class.getDeclaredField("data");
        field.setAccessible(true);
        Method find = StandardAuthorizerData.class.getDeclaredMethod("findAclRule", Set.class, String.class, Action.class);
        find.setAccessible(true);
        Set<KafkaPrincipal> principals = new HashSet<>(List.of(context.principal(), StandardAuthorizerData.WILDCARD_KAFKA_PRINCIPAL));
        return find.invoke(field.get(authorizer), principals, context.clientAddress().getHostAddress(), action).toString();
    }

    static void world(int acls, int denyPercent) throws Exception {
        List<StandardAcl> all = new ArrayList<>();
        for (int i = 0; i < acls; i++) {
            StandardAcl acl = acl(denyPercent);
            if (!all.contains(acl)) all.add(acl);
        }
        String superUsers = any("", "User:root", " User:root ; Group:alice;;", "User:bob;User:x");
        boolean everyone = random.nextBoolean();
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", superUsers, "allow.everyone.if.no.acl.found", everyone));
        authorizer.withPluginMetrics(new org.apache.kafka.common.metrics.internals.PluginMetricsImpl(
            new org.apache.kafka.common.metrics.Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        for (StandardAcl acl : all) authorizer.addAcl(Uuid.randomUuid(), acl);

        StringJoiner requests = new StringJoiner(",", "[", "]");
        for (int i = 0; i < 80; i++) {
            String user = any(USERS), host = any(HOSTS), name = any(any(NAMES), any(NAMES) + any("", "x", "-1", "c"), "*", "z");
            AclOperation operation = operation();
            Action action = new Action(operation, new ResourcePattern(any(TYPES), name, PatternType.LITERAL), 1, false, false);
            AuthorizableRequestContext context = context(user, host);
            boolean allowed = authorizer.authorize(context, List.of(action)).get(0) == AuthorizationResult.ALLOWED;
            String rule = rule(authorizer, context, action);
            int entry = -1;
            for (int k = 0; k < all.size(); k++) if (rule.equals("MatchingAcl(acl=" + all.get(k) + ")")) entry = k;
            requests.add(row(user, host, operation.code(), action.resourcePattern().resourceType().code(), name, allowed ? 1 : 0, entry));
        }
        StringJoiner byType = new StringJoiner(",", "[", "]");
        for (int i = 0; i < 20; i++) {
            String user = any(USERS), host = any(HOSTS);
            AclOperation operation = any(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER);
            ResourceType type = any(TYPES);
            boolean allowed = authorizer.authorizeByResourceType(context(user, host), operation, type) == AuthorizationResult.ALLOWED;
            byType.add(row(user, host, operation.code(), type.code(), allowed ? 1 : 0));
        }
        StringJoiner filters = new StringJoiner(",", "[", "]");
        for (int i = 0; i < 12; i++) {
            ResourceType type = any(ResourceType.ANY, ResourceType.ANY, any(TYPES), any(ResourceType.values()));
            String name = any(null, "*", any(NAMES), any(NAMES) + "x"), user = any(null, null, null, any(USERS), "User:*"), host = any(null, null, null, "*", "10.0.0.1");
            PatternType pattern = any(PatternType.MATCH, PatternType.MATCH, PatternType.ANY, any(PatternType.values()));
            AclOperation operation = any(AclOperation.ANY, AclOperation.ANY, AclOperation.ANY, operation());
            AclPermissionType permission = any(AclPermissionType.ANY, AclPermissionType.ANY, any(AclPermissionType.values()));
            AclBindingFilter filter = new AclBindingFilter(new ResourcePatternFilter(type, name, pattern),
                new AccessControlEntryFilter(user, host, operation, permission));
            StringJoiner matching = new StringJoiner(",", "[", "]");
            for (int k = 0; k < all.size(); k++) if (filter.matches(all.get(k).toBinding())) matching.add("" + k);
            filters.add(row(type.code(), name, pattern.code(), user, host, operation.code(), permission.code(), new StringBuilder(matching.toString())));
        }
        StringJoiner entries = new StringJoiner(",", "[", "]");
        for (StandardAcl acl : all) entries.add(row(acl));
        System.out.println("{\"super_users\":" + text(superUsers) + ",\"everyone\":" + everyone + ",\"acls\":" + entries
            + ",\"requests\":" + requests + ",\"by_type\":" + byType + ",\"filters\":" + filters + "}");
    }

    /** Supported operations, host texts, what AclControlManager says of new entries, and one wildcard case. */
    static void facts() throws Exception {
        StringJoiner supported = new StringJoiner(",", "{", "}");
        for (ResourceType type : ResourceType.values()) {
            if (type == ResourceType.UNKNOWN || type == ResourceType.ANY) continue;
            Set<Integer> codes = new TreeSet<>();
            for (AclOperation operation : AclEntry.supportedOperations(type)) codes.add((int) operation.code());
            supported.add("\"" + type.code() + "\":" + codes);
        }
        StringJoiner hosts = new StringJoiner(",", "{", "}");
        for (String host : new String[] {"10.0.0.1", "::1", "::", "fe80::1:0:0:abcd", "2001:0DB8::00ff", "::ffff:10.1.2.3", "::10.1.2.3", "1:2:3:4:5:6:7:8"})
            hosts.add(text(host) + ":" + text(InetAddress.getByName(host).getHostAddress()));
        Method validate = Class.forName("org.apache.kafka.controller.AclControlManager").getDeclaredMethod("validateNewAcl", AclBinding.class);
        validate.setAccessible(true);
        StringJoiner validated = new StringJoiner(",", "[", "]");
        for (int bad = 0; bad < 32; bad++) {
            StandardAcl acl = new StandardAcl((bad & 1) == 0 ? ResourceType.TOPIC : ResourceType.UNKNOWN, "x",
                (bad & 2) == 0 ? PatternType.PREFIXED : PatternType.UNKNOWN, (bad & 16) == 0 ? any(":", "User:a", "a:") : "alice", any("", "*"),
                (bad & 4) == 0 ? AclOperation.READ : AclOperation.UNKNOWN, (bad & 8) == 0 ? AclPermissionType.DENY : AclPermissionType.UNKNOWN);
            String message = null;
            try {
                validate.invoke(null, acl.toBinding());
            } catch (java.lang.reflect.InvocationTargetException e) {
                message = e.getCause().getMessage();
            }
            validated.add(row(new StringBuilder(row(acl)), message == null ? new StringBuilder("null") : message));
        }
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of());
        authorizer.completeInitialLoad();
        authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(ResourceType.GROUP, "*", PatternType.LITERAL, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
        StringJoiner stars = new StringJoiner(",", "{", "}");
        for (String name : new String[] {"x", "*", "*x", "**", "!x"}) {
            Action action = new Action(AclOperation.READ, new ResourcePattern(ResourceType.GROUP, name, PatternType.LITERAL), 1, false, false);
            stars.add(text(name) + ":" + !rule(authorizer, context("User:alice", "::1"), action).equals("DefaultDeny"));
        }
        System.out.println("{\"supported\":" + supported + ",\"hosts\":" + hosts + ",\"validated\":" + validated + ",\"wildcard_allows\":" + stars + "}");
    }

    public static void main(String[] args) throws Exception {
        System.setOut(new java.io.PrintStream(System.out, false, "UTF-8"));
        for (int i = 0; i < 60; i++) world(any(0, 2, 8, 20, 60, 120), any(0, 10, 40, 90));
        facts();
        System.out.flush();
    }
}
