package acceptance;

import acceptance.Application.Brief;
import acceptance.Application.Note;
import acceptance.Application.Pairs;
import acceptance.Application.Safe;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.couchbase.transaction.error.TransactionSystemUnambiguousException;

/** Cases: repositories, the template and transactions of Spring Data. */
final class Documents {
  static void declare(Cases cases) {
    cases.add("spring-repositories", Documents::repositories);
    cases.add("spring-versions-are-compared", Documents::versions);
    cases.add("spring-documents-expire", Documents::expire);
    cases.add("spring-template", Documents::template);
    cases.add("spring-transactions", Documents::transactions);
  }

  private static void repositories(Sdk sdk) {
    sdk.notes.saveAll(List.of(Note.of("r-1", "one"), Note.of("r-2", "two")));
    Expect.equal(sdk.notes.findById("r-1").get().text, "one", "what is found");
    Expect.that(sdk.notes.findById("r-none").isEmpty(), "nothing is found");
    int found = 0;
    for (Note note : sdk.notes.findAllById(List.of("r-1", "r-2", "r-none"))) {
      Expect.that(note.version != 0, "what is found has a version");
      found++;
    }
    Expect.equal(found, 2, "how many are found");
    sdk.notes.deleteById("r-1");
    Expect.that(!sdk.notes.existsById("r-1"), "deleted");
    Expect.that(sdk.notes.existsById("r-2"), "not deleted");
  }

  private static void versions(Sdk sdk) {
    Note first = sdk.notes.save(Note.of("v-1", "one"));
    Note second = sdk.notes.findById("v-1").get();
    first.text = "two";
    sdk.notes.save(first);
    Expect.error(() -> sdk.notes.save(second), OptimisticLockingFailureException.class);
    Expect.error(() -> sdk.notes.delete(second), OptimisticLockingFailureException.class);
    Expect.error(() -> sdk.template.insertById(Note.class).one(Note.of("v-1", "three")),
        DuplicateKeyException.class);
    Expect.equal(sdk.notes.findById("v-1").get().text, "two", "what was saved first");
  }

  private static void expire(Sdk sdk) throws Exception {
    Brief brief = new Brief();
    brief.id = "e-1";
    sdk.template.upsertById(Brief.class).one(brief);
    Expect.that(sdk.template.existsById(Brief.class).one("e-1"), "there");
    Expect.within(Duration.ofSeconds(4),
        () -> sdk.template.findById(Brief.class).one("e-1") == null, "expired");
  }

  private static void template(Sdk sdk) throws Exception {
    sdk.template.upsertById(Note.class).one(Note.of("t-1", "one"));
    Note locked = sdk.template.findById(Note.class).withLock(Duration.ofSeconds(15)).one("t-1");
    locked.text = "two";
    sdk.template.replaceById(Note.class).one(locked);
    Expect.equal(sdk.template.findById(Note.class).project("text").one("t-1").text, "two",
        "a projection of what was locked");
    sdk.template.mutateInById(Note.class).withUpsertPaths("text").one(Note.of("t-1", "three"));
    Expect.equal(sdk.template.findFromReplicasById(Note.class).any("t-1").text, "three", "a part");
    Safe safe = new Safe();
    safe.id = "t-2";
    sdk.template.insertById(Safe.class).one(safe);
    // A scan sees what is durable, and a commit is acknowledged before it is.
    Expect.within(Sdk.READY, () -> Set.of("t-1", "t-2").equals(Set.copyOf(
        sdk.template.rangeScan(Note.class).rangeScanIds("t-", "t-~").toList())), "keys of a range");
  }

  private static void transactions(Sdk sdk) {
    Pairs pairs = sdk.context.getBean(Pairs.class);
    sdk.notes.saveAll(List.of(Note.of("p-1", "kept"), Note.of("p-2", "kept")));
    pairs.change("p-1", "p-added", false);
    Expect.equal(sdk.notes.findById("p-1").get().text, "changed", "committed");
    Expect.equal(sdk.notes.findById("p-added").get().text, "added", "committed");
    Expect.error(() -> pairs.change("p-2", "p-none", true),
        TransactionSystemUnambiguousException.class);
    Expect.equal(sdk.notes.findById("p-2").get().text, "kept", "rolled back");
    Expect.that(!sdk.notes.existsById("p-none"), "rolled back");
  }
}
