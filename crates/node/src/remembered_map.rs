//! The cluster map that a node has carried out last, in its data directory. A start that is told of
//! no map goes on in the cluster: a node that took itself for alone would make vBuckets active that
//! others have by now, and replicas that still follow its address would go back to what it has.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use cluster::ClusterPlan;
use platform::{FileError, FileErrorKind, Files};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::NodeConfig;

/// Where the map is remembered.
#[derive(Clone)]
pub(crate) struct RememberedMap {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// The bucket of a map that names none.
    default_bucket: String,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Document {
    /// Which of the map's nodes this one is.
    node: String,
    map: Value,
    /// Buckets of this node that are deleted by this map, while they may be here still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

/// What is in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// The node's name in the map.
    node: String,
    /// The map.
    pub(crate) plan: ClusterPlan,
    /// The buckets that a start deletes: this map's predecessor had them.
    pub(crate) removed: Vec<String>,
}

/// How a node starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartingPlace {
    /// Its name in maps.
    pub(crate) node_name: String,
    /// The map, unless it is alone.
    pub(crate) plan: Option<ClusterPlan>,
}

impl RememberedMap {
    /// The one that is kept at `path`. Maps that name no bucket are about `default_bucket`.
    pub(crate) fn new(files: Arc<dyn Files>, path: PathBuf, default_bucket: &str) -> Self {
        Self { files, path, default_bucket: default_bucket.to_owned() }
    }

    /// Remembers a map, durably, and the buckets that are `removed` by it: from here on a start
    /// deletes them. They are none once they are marked, and before others have their names.
    pub(crate) fn write(
        &self,
        node_name: &str,
        plan: &ClusterPlan,
        removed: &[String],
    ) -> Result<(), FileError> {
        let map = plan.to_json();
        let read_back = ClusterPlan::parse(&map, &self.default_bucket);
        assert!(
            read_back.is_ok_and(|read| read == *plan),
            "a start reads the map that was written"
        );
        let map = serde_json::from_str(&map).expect("a map is JSON");
        let document = Document { node: node_name.to_owned(), map, removed: removed.to_vec() };
        let text = serde_json::to_vec(&document).expect("names and JSON are JSON");
        self.files.replace_all(&self.path, &text)
    }

    /// Where a node starts: with the map that it is told of, or else where it was.
    pub(crate) fn starting_place(&self, config: &NodeConfig) -> anyhow::Result<StartingPlace> {
        let default_name = format!("ns_1@{}", config.advertised_host());
        let said = config.node_name.clone();
        if let Some(path) = &config.cluster_map {
            let content = self.files.read_all(path);
            let content = content.with_context(|| format!("the cluster map {}", path.display()))?;
            let given = self.parse(&content).with_context(|| path.display().to_string())?;
            let plan = match self.last().filter(|last| has_bucket_changes_alone(last, &given)) {
                Some(last) => last.plan,
                None => {
                    self.warn_of_older(&given);
                    given
                }
            };
            let node_name = said.unwrap_or(default_name);
            return Ok(StartingPlace { node_name, plan: Some(plan) });
        }
        if config.leave_cluster {
            self.forget()?;
        }
        let Some(Remembered { node: remembered, plan, .. }) =
            self.read().with_context(|| self.advice())?
        else {
            return Ok(StartingPlace { node_name: said.unwrap_or(default_name), plan: None });
        };
        ensure!(
            config.password.is_some(),
            "{} is of a node of a cluster, {remembered}: the nodes log in to each other, so give \
             --password, as before; or have the node be alone with --leave-cluster",
            self.path.display()
        );
        let node_name = said.unwrap_or(remembered);
        tracing::info!(
            node_name,
            epoch = plan.revision.epoch,
            revision = plan.revision.revision,
            "the node goes on with the cluster map that it has carried out last"
        );
        Ok(StartingPlace { node_name, plan: Some(plan) })
    }

    /// Whether what was carried out last can be read, if anything was.
    ///
    /// # Errors
    /// It cannot, and keeps a node from starting that is told of no map.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.read().map(drop).with_context(|| self.advice())
    }

    /// What was carried out last, if it can be read.
    pub(crate) fn last(&self) -> Option<Remembered> {
        self.read().ok().flatten()
    }

    fn read(&self) -> anyhow::Result<Option<Remembered>> {
        let content = match self.files.read_all(&self.path) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(None),
            content => content?,
        };
        let Document { node, map, removed } = serde_json::from_slice(&content)?;
        let plan = ClusterPlan::parse(&map.to_string(), &self.default_bucket)?;
        Ok(Some(Remembered { node, plan, removed }))
    }

    fn parse(&self, content: &[u8]) -> anyhow::Result<ClusterPlan> {
        let text = std::str::from_utf8(content).context("this is not text")?;
        Ok(ClusterPlan::parse(text, &self.default_bucket)?)
    }

    fn forget(&self) -> anyhow::Result<()> {
        match self.files.remove(&self.path) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        let directory = self.path.parent().context("the data directory has a path")?;
        // Durable before the node is alone: a crash could otherwise bring the map back behind its
        // writes.
        self.files.sync_directory(directory)?;
        tracing::warn!("the node has left its cluster and is alone");
        Ok(())
    }

    /// Whoever says a map decides. It may be an old file, though.
    fn warn_of_older(&self, plan: &ClusterPlan) {
        if let Some(Remembered { plan: remembered, .. }) = self.last()
            && remembered.revision > plan.revision
        {
            tracing::warn!(
                given = plan.revision.revision,
                remembered = remembered.revision.revision,
                "the cluster map that the node is given is older than the one that it has carried \
                 out last; without --cluster-map it goes on with that"
            );
        }
    }

    fn advice(&self) -> String {
        format!(
            "{} cannot be read, so that the node does not know whether it is one of a cluster; \
             give its map with --cluster-map, or have it be alone with --leave-cluster",
            self.path.display()
        )
    }
}

/// Whether the node has gone on from `given` only by changes of buckets, which no file that people
/// keep tells of.
fn has_bucket_changes_alone(last: &Remembered, given: &ClusterPlan) -> bool {
    given.with_bucket_changes_of(&last.plan).as_ref() == Some(&last.plan)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use cluster::{BucketPlan, NodeAddress, PlannedNode, Revision};
    use platform::simulated::SimulatedFiles;

    use super::*;

    const GIVEN: &str = "/given.json";

    fn plan(revision: i64) -> ClusterPlan {
        let address = NodeAddress {
            host: "127.0.0.1".to_owned(),
            data_port: 12000,
            management_port: 9000,
            tls: None,
            external: None,
        };
        let node = PlannedNode { name: "n_0".to_owned(), address };
        let revision = Revision { epoch: 1, revision };
        let plan = ClusterPlan::of_nodes(vec![node]);
        ClusterPlan { revision, ..plan.with_bucket("mine", BucketPlan::balanced(1, 0, 4)) }
    }

    fn remembered() -> (SimulatedFiles, RememberedMap) {
        let files = SimulatedFiles::new();
        files.create_directories(Path::new("/data")).unwrap();
        let path = PathBuf::from("/data/cluster-map.json");
        (files.clone(), RememberedMap::new(Arc::new(files), path, "mine"))
    }

    fn config(change: impl FnOnce(&mut NodeConfig)) -> NodeConfig {
        let mut config = NodeConfig { password: Some("p".into()), ..NodeConfig::default() };
        change(&mut config);
        config
    }

    fn place(node_name: &str, plan: Option<ClusterPlan>) -> StartingPlace {
        StartingPlace { node_name: node_name.to_owned(), plan }
    }

    #[test]
    fn a_node_goes_on_where_it_was_unless_it_is_told_something_else() {
        let (files, map) = remembered();
        let start = |change: fn(&mut NodeConfig)| map.starting_place(&config(change)).unwrap();
        assert_eq!(start(|_| {}), place("ns_1@127.0.0.1", None));
        map.write("n_0", &plan(7), &[]).unwrap();
        assert_eq!(start(|_| {}), place("n_0", Some(plan(7))));
        let other_name = |it: &mut NodeConfig| it.node_name = Some("n_1".to_owned());
        assert_eq!(start(other_name), place("n_1", Some(plan(7))));
        files.replace_all(Path::new(GIVEN), plan(3).to_json().as_bytes()).unwrap();
        let given = |it: &mut NodeConfig| {
            it.node_name = Some("n_0".to_owned());
            it.cluster_map = Some(PathBuf::from(GIVEN));
        };
        assert_eq!(start(given), place("n_0", Some(plan(3))));
        assert_eq!(start(|_| {}), place("n_0", Some(plan(7))));
        assert_eq!(start(|it| it.leave_cluster = true), place("ns_1@127.0.0.1", None));
        assert_eq!(start(|_| {}), place("ns_1@127.0.0.1", None));
    }

    #[test]
    fn a_map_that_people_keep_does_not_take_back_what_clients_have_changed_of_the_buckets() {
        let (files, map) = remembered();
        files.replace_all(Path::new(GIVEN), plan(3).to_json().as_bytes()).unwrap();
        let given = |it: &mut NodeConfig| it.cluster_map = Some(PathBuf::from(GIVEN));
        let start = || map.starting_place(&config(given)).unwrap().plan;
        let changed = plan(3).without_bucket("mine").unwrap();
        map.write("n_0", &changed, &["mine".to_owned()]).unwrap();
        assert_eq!(map.last().unwrap().removed, ["mine"]);
        assert_eq!(start(), Some(changed));
        // Another place for a vBucket is what whoever gives the map decides.
        let mut moved = plan(3).with_settings("mine", BTreeMap::new()).unwrap();
        moved.buckets.insert("mine".to_owned(), BucketPlan::balanced(1, 0, 8));
        map.write("n_0", &moved, &[]).unwrap();
        assert_eq!(start(), Some(plan(3)));
    }

    #[test]
    fn a_map_of_a_time_before_buckets_had_names_is_about_the_first_one() {
        let (files, map) = remembered();
        let unnamed = plan(7).to_json().replace(r#""bucket":"mine","#, "");
        assert!(!unnamed.contains("mine"), "{unnamed}");
        let file = format!(r#"{{"node": "n_0", "map": {unnamed}}}"#);
        files.replace_all(Path::new("/data/cluster-map.json"), file.as_bytes()).unwrap();
        let start = |change: fn(&mut NodeConfig)| map.starting_place(&config(change)).unwrap();
        assert_eq!(start(|_| {}), place("n_0", Some(plan(7))));
        files.replace_all(Path::new(GIVEN), unnamed.as_bytes()).unwrap();
        let given = |it: &mut NodeConfig| it.cluster_map = Some(PathBuf::from(GIVEN));
        assert_eq!(start(given).plan, Some(plan(7)));
    }

    #[test]
    fn a_node_that_cannot_go_on_says_what_to_do() {
        let (files, map) = remembered();
        let refusal = |change: fn(&mut NodeConfig)| {
            format!("{:#}", map.starting_place(&config(change)).unwrap_err())
        };
        map.write("n_0", &plan(7), &[]).unwrap();
        let without_password = refusal(|it| it.password = None);
        for said in ["n_0", "--password", "--leave-cluster"] {
            assert!(without_password.contains(said), "{without_password}");
        }
        for damaged in [&b""[..], b"{\"node\": \"n_0\"}", b"{\"node\": \"n_0\", \"map\": {}}"] {
            files.replace_all(Path::new("/data/cluster-map.json"), damaged).unwrap();
            let error = refusal(|_| {});
            assert!(
                error.contains("cluster-map.json") && error.contains("--cluster-map"),
                "{error}"
            );
        }
    }
}
