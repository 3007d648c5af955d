package acceptance

/** Cases: data structures, which the SDK makes of documents and their parts. Its queues are none:
  * they give back first what was put in last.
  */
object Structures {
  def declare(cases: Cases): Unit = {
    cases.add("lists") { sdk =>
      val list = sdk.collection.buffer[String](sdk.key())
      list.append("b")
      list.append("c")
      list.prepend("a")
      Expect.equal(list.toList, List("a", "b", "c"), "elements")
      Expect.equal((list(1), list.indexOf("c"), list.size), ("b", 2, 3), "element, index, size")
      list.remove(0)
      list.update(0, "x")
      Expect.equal(list.toList, List("x", "c"), "elements")
    }
    cases.add("maps") { sdk =>
      val map = sdk.collection.map[Int](sdk.key())
      map.put("a", 1)
      map.put("b", 2)
      Expect.equal((map("b"), map.size, map.get("c")), (2, 2, None), "entry, size, existence")
      map.remove("a")
      Expect.equal(map.toMap, Map("b" -> 2), "entries")
    }
    cases.add("sets") { sdk =>
      val set = sdk.collection.set[String](sdk.key())
      set.addOne("a")
      set.addOne("a")
      set.addOne("b")
      Expect.equal(set.size, 2, "an element once")
      Expect.that(set.contains("b"), "contained")
      set.remove("a")
      Expect.equal(set.toSet, Set("b"), "elements")
    }
  }
}
