package acceptance;

import static com.couchbase.client.java.kv.ScanOptions.scanOptions;

import com.couchbase.client.core.msg.kv.MutationToken;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.kv.MutationResult;
import com.couchbase.client.java.kv.MutationState;
import com.couchbase.client.java.kv.ScanResult;
import com.couchbase.client.java.kv.ScanTerm;
import com.couchbase.client.java.kv.ScanType;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Cases: scans of many documents. */
final class Scans {
  private static final int COUNT = 1000;

  static void declare(Cases cases) {
    cases.add("scans-of-many-documents", sdk -> expectScans(sdk.collection, COUNT));
  }

  static ScanType everything() {
    return ScanType.rangeScan(null, null);
  }

  /** What a scan has to see: these mutations. */
  static MutationState sees(List<? extends MutationResult> results) {
    return MutationState.from(results.stream().map(result -> result.mutationToken().get())
        .toArray(MutationToken[]::new));
  }

  /** The keys that a scan finds, in order. */
  static List<String> keys(Collection collection, ScanType scan, MutationState state) {
    try (Stream<ScanResult> results =
        collection.scan(scan, scanOptions().idsOnly(true).consistentWith(state))) {
      return results.map(ScanResult::id).sorted().toList();
    }
  }

  /** Every kind of scan finds what it is to find among this many documents. */
  static void expectScans(Collection collection, int count) throws Exception {
    MutationState state = sees(Bulk.inParallel(count,
        index -> collection.upsert(name(index), Map.of("n", index))));
    ScanType range = ScanType.rangeScan(
        ScanTerm.inclusive(name(100)), ScanTerm.exclusive(name(200)));
    Expect.equal(keys(collection, range, state), names(100, 200), "keys of a range");
    try (Stream<ScanResult> results =
        collection.scan(range, scanOptions().consistentWith(state))) {
      results.forEach(result -> {
        Expect.equal(result.id(), name(result.contentAsObject().getInt("n")), "value of a range");
        Expect.that(result.cas() != 0, "a result has a CAS");
      });
    }
    Expect.equal(keys(collection, ScanType.prefixScan("scanned-"), state), names(0, count),
        "all keys");
    Expect.equal(keys(collection, ScanType.prefixScan("scanned-01"), state), names(100, 200),
        "keys with a prefix");
    Expect.equal(keys(collection, ScanType.prefixScan("absent-"), state), List.of(), "nothing");
    List<String> sample = keys(collection, ScanType.samplingScan(20, 5), state);
    Expect.that(!sample.isEmpty() && sample.size() <= 20
        && new HashSet<>(sample).size() == sample.size(), "a sample is a part");
  }

  private static String name(int index) {
    return String.format("scanned-%04d", index);
  }

  private static List<String> names(int from, int to) {
    return IntStream.range(from, to).mapToObj(Scans::name).toList();
  }
}
