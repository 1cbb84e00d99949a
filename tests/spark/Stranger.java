import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.rpc.RpcAddress;
import org.apache.spark.rpc.RpcEnv;
import scala.reflect.ClassTag$;

/** Asks the endpoints of a Spark driver something, without its secret: java -cp 'jars/*' Stranger.java PORT. */
class Stranger {
    public static void main(String[] arguments) throws Exception {
        SparkConf conf = new SparkConf(false).set("spark.rpc.askTimeout", "20s").set("spark.rpc.lookupTimeout", "20s");
        SecurityManager none = new SecurityManager(
            conf, SecurityManager.$lessinit$greater$default$2(), SecurityManager.$lessinit$greater$default$3());
        RpcEnv client = RpcEnv.create("stranger", "127.0.0.1", 0, conf, none, true);
        RpcAddress driver = new RpcAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        for (String name : new String[] {"BlockManagerMaster", "LocalSchedulerBackendEndpoint", "OutputCommitCoordinator"}) {
            System.out.println(name + ": " + (answers(client, driver, name) ? "answers" : "refuses"));
        }
        Runtime.getRuntime().halt(0);
    }

    private static boolean answers(RpcEnv client, RpcAddress driver, String name) throws Exception {
        try {
            var endpoint = client.setupEndpointRef(driver, name);
            if (name.equals("BlockManagerMaster")) {
                Class<?> question = Class.forName("org.apache.spark.storage.BlockManagerMessages$GetMemoryStatus$");
                endpoint.askSync(question.getField("MODULE$").get(null), ClassTag$.MODULE$.Any());
            }
            return true;
        } catch (Exception refused) {
            System.err.println(refused);
            return false;
        }
    }
}
