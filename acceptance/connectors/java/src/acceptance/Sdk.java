package acceptance;

import com.couchbase.client.java.Cluster;
import java.time.Duration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.data.couchbase.core.CouchbaseTemplate;

/** Spring's objects that the cases share. */
final class Sdk implements AutoCloseable {
  static final String BUCKET = "default";
  static final Duration READY = Duration.ofSeconds(30);

  final AnnotationConfigApplicationContext context;
  final CouchbaseTemplate template;
  final Application.Notes notes;

  Sdk() {
    context = new AnnotationConfigApplicationContext(Application.class);
    template = context.getBean(CouchbaseTemplate.class);
    notes = context.getBean(Application.Notes.class);
    context.getBean(Cluster.class).bucket(BUCKET).waitUntilReady(READY);
  }

  @Override
  public void close() {
    context.close();
  }
}
