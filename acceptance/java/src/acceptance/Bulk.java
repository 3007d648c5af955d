package acceptance;

import static com.couchbase.client.java.kv.IncrementOptions.incrementOptions;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import reactor.core.publisher.Flux;

/** Cases: many operations at once. */
final class Bulk {
  private static final int COUNT = 500;

  static void declare(Cases cases) {
    cases.add("parallel-operations", sdk -> inParallel(COUNT, index -> {
      Sdk.Stored stored = sdk.stored(Map.of("n", index));
      sdk.expectValue(stored.key(), Map.of("n", index));
      return null;
    }));
    cases.add("reactive-operations", sdk -> {
      Long sum = Flux.range(0, COUNT)
          .flatMap(index -> sdk.collection.reactive().upsert("reactive-" + index, index)
              .then(sdk.collection.reactive().get("reactive-" + index)))
          .map(read -> read.contentAs(Long.class)).reduce(0L, Long::sum).block();
      Expect.equal(sum, (long) COUNT * (COUNT - 1) / 2, "all are read");
    });
    cases.add("parallel-increments", sdk -> {
      String key = sdk.key();
      List<Long> values = inParallel(COUNT,
          index -> sdk.binary.increment(key, incrementOptions().initial(1)).content());
      List<Long> expected = LongStream.rangeClosed(1, COUNT).boxed().toList();
      Expect.equal(values.stream().sorted().toList(), expected, "every number once");
    });
  }

  /** Results of a function of the numbers below the count, many at the same time. */
  static <T> List<T> inParallel(int count, IntFunction<T> body) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(32);
    try {
      List<Future<T>> futures = IntStream.range(0, count)
          .mapToObj(index -> threads.submit(() -> body.apply(index))).toList();
      List<T> results = new ArrayList<>();
      for (Future<T> future : futures) {
        results.add(future.get());
      }
      return results;
    } finally {
      threads.shutdownNow();
    }
  }
}
