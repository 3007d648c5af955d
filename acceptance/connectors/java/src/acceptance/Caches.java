package acceptance;

import acceptance.Application.Squares;
import com.couchbase.client.core.error.ServiceNotAvailableException;
import org.springframework.cache.Cache;
import org.springframework.cache.CacheManager;

/** Cases: Spring's caches. */
final class Caches {
  static void declare(Cases cases) {
    cases.add("spring-caches", Caches::caches);
    cases.add("spring-queries-are-refused", Caches::queries);
  }

  private static Cache cache(Sdk sdk) {
    return sdk.context.getBean(CacheManager.class).getCache("squares");
  }

  private static void caches(Sdk sdk) {
    Squares squares = sdk.context.getBean(Squares.class);
    squares.of(3);
    Expect.equal(squares.of(3), 9, "what is cached");
    Expect.equal(squares.asked(), 1, "questions that no cache answers");
    squares.forget(3);
    squares.of(3);
    Expect.equal(squares.asked(), 2, "questions that no cache answers");
    Expect.equal(cache(sdk).putIfAbsent(3, 1).get(), 9, "what is there");
    Expect.equal(cache(sdk).putIfAbsent(4, 16), null, "what is not there");
    Expect.equal(cache(sdk).get(4, Integer.class), 16, "what was put");
  }

  private static void queries(Sdk sdk) {
    Throwable refused = Expect.error(() -> sdk.notes.count(), RuntimeException.class);
    Expect.that(refused.getCause() instanceof ServiceNotAvailableException, "no query service");
    Expect.error(() -> cache(sdk).clear(), ServiceNotAvailableException.class);
  }
}
