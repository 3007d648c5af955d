package acceptance;

import com.couchbase.client.java.AsyncBucket;
import com.couchbase.client.java.document.JsonLongDocument;
import java.util.List;
import java.util.stream.LongStream;
import rx.Observable;
import rx.functions.Func1;

/** Cases: many operations at once. */
final class Bulk {
  private static final int COUNT = 500;
  private static final int THOUSANDS = 4000;

  static void declare(Cases cases) {
    cases.add("parallel-operations", sdk -> {
      AsyncBucket documents = sdk.bucket.async();
      List<Long> read = inParallel(COUNT, index -> documents.upsert(numbered("parallel", index))
          .flatMap(stored -> documents.get(stored)).map(JsonLongDocument::content));
      expectAll(read, 0, COUNT - 1);
    });
    cases.add("parallel-increments", sdk -> {
      String key = sdk.key();
      expectAll(inParallel(COUNT, index ->
          sdk.bucket.async().counter(key, 1, 1).map(JsonLongDocument::content)), 1, COUNT);
    });
    cases.add("thousands-in-flight", sdk -> {
      AsyncBucket documents = sdk.bucket.async();
      inParallel(THOUSANDS, index -> documents.upsert(numbered("thousands", index)));
      expectAll(inParallel(THOUSANDS, index -> documents.get(numbered("thousands", index))
          .map(JsonLongDocument::content)), 0, THOUSANDS - 1);
      inParallel(THOUSANDS, index -> documents.remove(numbered("thousands", index)));
      Expect.that(sdk.isGone("thousands-0"), "all are removed");
    });
  }

  private static JsonLongDocument numbered(String name, int index) {
    return JsonLongDocument.create(name + "-" + index, (long) index);
  }

  private static void expectAll(List<Long> numbers, long from, long to) {
    List<Long> expected = LongStream.rangeClosed(from, to).boxed().toList();
    Expect.equal(numbers.stream().sorted().toList(), expected, "every number once");
  }

  /** Results of a function of the numbers below the count, all at the same time. */
  static <T> List<T> inParallel(int count, Func1<Integer, Observable<T>> body) {
    return Observable.range(0, count).flatMap(body).toList().toBlocking().single();
  }
}
