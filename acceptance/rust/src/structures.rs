//! Cases: data structures, which the SDK makes of documents and their parts.

use crate::case::{Outcome, expect, expect_equal};
use crate::sdk::Sdk;

cases! {
    "lists": lists,
    "maps": maps,
    "queues": queues,
    "sets": sets,
}

async fn lists(sdk: &Sdk) -> Outcome {
    let list = sdk.collection.list(sdk.key(), None);
    list.append("b").await?;
    list.append("c").await?;
    list.prepend("a").await?;
    let elements: Vec<String> = list.iter().await?.collect();
    expect_equal(&elements, &["a", "b", "c"].map(str::to_owned).to_vec(), "elements")?;
    expect_equal(&list.get::<String>(1).await?.as_str(), &"b", "element")?;
    expect_equal(&list.position(&"c".to_owned()).await?, &Some(2), "index")?;
    list.remove(0).await?;
    expect_equal(&list.len().await?, &2, "size")
}

async fn maps(sdk: &Sdk) -> Outcome {
    let map = sdk.collection.map(sdk.key(), None);
    map.insert("a", 1).await?;
    map.insert("b", 2).await?;
    expect_equal(&map.get::<i64>("b").await?, &2, "entry")?;
    expect_equal(&map.len().await?, &2, "size")?;
    expect(!map.contains_key("c").await?, "there is no such key")?;
    map.remove("a").await?;
    expect_equal(&map.keys().await?, &vec!["b".to_owned()], "keys")?;
    expect_equal(&map.values::<i64>().await?, &vec![2], "values")
}

async fn queues(sdk: &Sdk) -> Outcome {
    let queue = sdk.collection.queue(sdk.key(), None);
    for element in ["first", "second", "third"] {
        queue.push(element).await?;
    }
    expect_equal(&queue.pop::<String>().await?.as_str(), &"first", "the first one")?;
    expect_equal(&queue.pop::<String>().await?.as_str(), &"second", "the next one")?;
    expect_equal(&queue.len().await?, &1, "size")
}

async fn sets(sdk: &Sdk) -> Outcome {
    let set = sdk.collection.set(sdk.key(), None);
    expect(set.insert("a").await?, "a new element")?;
    expect(!set.insert("a").await?, "one that is there")?;
    set.insert("b").await?;
    expect(set.contains(&"b".to_owned()).await?, "contained")?;
    set.remove("a".to_owned()).await?;
    expect_equal(&set.values::<String>().await?, &vec!["b".to_owned()], "elements")
}
