// Has the module for Java start a node, and stores and reads a document there.

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import java.time.Duration;
import org.testcontainers.couchbase.BucketDefinition;
import org.testcontainers.couchbase.CouchbaseContainer;
import org.testcontainers.couchbase.CouchbaseService;
import org.testcontainers.utility.DockerImageName;

public final class Module {
  public static void main(String[] arguments) {
    DockerImageName image =
        DockerImageName.parse("settee:0.1.0").asCompatibleSubstituteFor("couchbase/server");
    BucketDefinition wanted = new BucketDefinition("mine").withPrimaryIndex(false);
    try (CouchbaseContainer container = new CouchbaseContainer(image)) {
      container
          .withEnv("SETTEE_SETUP", "anywhere")
          .withCredentials("tester", "secret-password")
          .withEnabledServices(CouchbaseService.KV)
          .withBucket(wanted.withFlushEnabled(true));
      container.start();
      Cluster cluster =
          Cluster.connect(
              container.getConnectionString(), container.getUsername(), container.getPassword());
      Bucket bucket = cluster.bucket("mine");
      bucket.waitUntilReady(Duration.ofSeconds(10));
      Collection documents = bucket.defaultCollection();
      documents.upsert("sofa", JsonObject.create().put("seats", 3));
      int seats = documents.get("sofa").contentAsObject().getInt("seats");
      cluster.buckets().flushBucket("mine");
      boolean isThere = documents.exists("sofa").exists();
      cluster.disconnect();
      if (seats != 3 || isThere) {
        throw new IllegalStateException(seats + " seats; behind the flush: " + isThere);
      }
    }
    System.out.println("stored, read and flushed");
    System.exit(0);
  }
}
