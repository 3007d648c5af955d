package acceptance;

import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.java.env.ClusterEnvironment;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.CacheEvict;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.couchbase.cache.CouchbaseCacheConfiguration;
import org.springframework.data.couchbase.cache.CouchbaseCacheManager;
import org.springframework.data.couchbase.config.AbstractCouchbaseConfiguration;
import org.springframework.data.couchbase.core.CouchbaseTemplate;
import org.springframework.data.couchbase.core.mapping.Document;
import org.springframework.data.couchbase.repository.CouchbaseRepository;
import org.springframework.data.couchbase.repository.config.EnableCouchbaseRepositories;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;

/** An application of Spring as its manual makes one. */
@Configuration
@EnableCouchbaseRepositories(considerNestedRepositories = true)
@EnableTransactionManagement
@EnableCaching
public class Application extends AbstractCouchbaseConfiguration {
  /** Its CAS is compared when it is stored. */
  @Document
  public static class Note {
    @Id public String id;
    @Version public long version;
    public String text;

    static Note of(String id, String text) {
      Note note = new Note();
      note.id = id;
      note.text = text;
      return note;
    }
  }

  @Document(expiry = 2)
  public static class Brief {
    @Id public String id;
    public String text;
  }

  @Document(durabilityLevel = DurabilityLevel.PERSIST_TO_MAJORITY)
  public static class Safe {
    @Id public String id;
    public String text;
  }

  public interface Notes extends CouchbaseRepository<Note, String> {}

  /** Counts how often it is asked for what is not in a cache. */
  public static class Squares {
    private final AtomicInteger asked = new AtomicInteger();

    @Cacheable("squares")
    public Integer of(Integer number) {
      asked.incrementAndGet();
      return number * number;
    }

    @CacheEvict("squares")
    public void forget(Integer number) {}

    public int asked() {
      return asked.get();
    }
  }

  /** Changes two documents, or none. */
  public static class Pairs {
    private final CouchbaseTemplate template;

    Pairs(CouchbaseTemplate template) {
      this.template = template;
    }

    @Transactional
    public void change(String existing, String added, boolean fails) {
      Note note = template.findById(Note.class).one(existing);
      note.text = "changed";
      template.replaceById(Note.class).one(note);
      template.insertById(Note.class).one(Note.of(added, "added"));
      if (fails) {
        throw new IllegalStateException("the application has changed its mind");
      }
    }
  }

  @Override
  public String getConnectionString() {
    return System.getenv("SETTEE_CONNECT");
  }

  @Override
  public String getUserName() {
    return System.getenv("SETTEE_USER");
  }

  @Override
  public String getPassword() {
    return System.getenv("SETTEE_PASSWORD");
  }

  @Override
  public String getBucketName() {
    return Sdk.BUCKET;
  }

  @Override
  protected void configureEnvironment(ClusterEnvironment.Builder environment) {
    environment.timeoutConfig(timeouts -> timeouts.connectTimeout(Sdk.READY)
        .kvTimeout(Duration.ofSeconds(10)).kvDurableTimeout(Sdk.READY));
  }

  @Bean
  CacheManager cacheManager(CouchbaseTemplate template) {
    return CouchbaseCacheManager.builder(template.getCouchbaseClientFactory())
        .cacheDefaults(CouchbaseCacheConfiguration.defaultCacheConfig()
            .entryExpiry(Duration.ofMinutes(1)))
        .build();
  }

  @Bean
  Squares squares() {
    return new Squares();
  }

  @Bean
  Pairs pairs(CouchbaseTemplate template) {
    return new Pairs(template);
  }
}
