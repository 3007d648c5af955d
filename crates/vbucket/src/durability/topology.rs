//! The nodes that must hold durable writes, and how far each of them is.

use document::Seqno;

use crate::persistence::Topology;

/// Chains of a topology: two while a vBucket moves from one set of nodes to another.
const CHAINS_MAX: usize = 2;
/// Nodes of a chain, the active one and those that are not placed included.
const CHAIN_NODES_MAX: usize = 4;

/// Which durable writes are taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurabilityLimits {
    /// With more replicas than this no durable write is possible
    /// (`sync_writes_max_allowed_replicas`).
    pub replicas_max: usize,
    /// Where too few nodes are placed for a majority, a write is committed once the active node
    /// holds it (`durability_impossible_fallback`).
    pub fallback_to_master_ack: bool,
}

impl Default for DurabilityLimits {
    fn default() -> Self {
        Self { replicas_max: 2, fallback_to_master_ack: false }
    }
}

/// Why a topology is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTopology {
    /// There is one chain, or there are two.
    ChainCount,
    /// A chain has one to four nodes.
    NodeCount,
    /// The first node of a chain is the active one and has a name.
    NoActive,
    /// A node is in a chain once.
    Duplicate,
}

/// Whether durable writes can go by `topology`.
pub fn check_topology(topology: &Topology) -> Result<(), InvalidTopology> {
    if topology.is_empty() || topology.len() > CHAINS_MAX {
        return Err(InvalidTopology::ChainCount);
    }
    for chain in topology {
        if chain.is_empty() || chain.len() > CHAIN_NODES_MAX {
            return Err(InvalidTopology::NodeCount);
        }
        if chain.first().is_none_or(Option::is_none) {
            return Err(InvalidTopology::NoActive);
        }
        let is_twice = |(index, node): (usize, &Option<String>)| {
            node.is_some() && chain[..index].contains(node)
        };
        if chain.iter().enumerate().any(is_twice) {
            return Err(InvalidTopology::Duplicate);
        }
    }
    Ok(())
}

/// A node, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    /// It holds all prepares up to here as their levels demand.
    pub(crate) held: Seqno,
}

/// The nodes of a topology. The first one is this node.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    /// Every node once, whatever chains it is in.
    nodes: Vec<Node>,
    chains: Vec<Chain>,
}

#[derive(Clone, Debug)]
struct Chain {
    /// Indices of nodes, the active one's first; none for a node that is not placed.
    slots: Vec<Option<usize>>,
}

/// Up to where prepares are to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Satisfied {
    /// All up to here.
    pub(crate) through: Seqno,
    /// Those that no client waits for, up to here.
    pub(crate) ownerless_through: Seqno,
    /// Of those, a majority holds the ones up to here.
    pub(crate) durable_through: Seqno,
}

impl Satisfied {
    const ALL: Self = Self::all_up_to(Seqno(u64::MAX));
    pub(crate) const NONE: Self = Self::all_up_to(Seqno(0));

    const fn all_up_to(seqno: Seqno) -> Self {
        Self { through: seqno, ownerless_through: seqno, durable_through: seqno }
    }
}

impl Chains {
    /// Those of `topology`, if it is one.
    pub(crate) fn new(topology: &Topology) -> Option<Self> {
        check_topology(topology).ok()?;
        let mut nodes: Vec<Node> = Vec::new();
        let mut place = |name: &String| {
            let index = nodes.iter().position(|node| *node.name == **name);
            index.unwrap_or_else(|| {
                nodes.push(Node { name: name.as_str().into(), held: Seqno(0) });
                nodes.len() - 1
            })
        };
        let chains = topology
            .iter()
            .map(|names| names.iter().map(|name| name.as_ref().map(&mut place)).collect())
            .map(|slots| Chain { slots })
            .collect();
        Some(Self { nodes, chains })
    }

    /// This node.
    pub(crate) fn own_mut(&mut self) -> &mut Node {
        &mut self.nodes[0]
    }

    /// The name of this node.
    pub(crate) fn own_name(&self) -> &str {
        &self.nodes[0].name
    }

    /// Another node than this one.
    pub(crate) fn other_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.nodes[1..].iter_mut().find(|node| *node.name == *name)
    }

    /// The nodes.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes by chain.
    pub(crate) fn placed(&self) -> impl Iterator<Item = impl Iterator<Item = Option<&Node>>> {
        let node = |slot: &Option<usize>| slot.map(|index| &self.nodes[index]);
        self.chains.iter().map(move |chain| chain.slots.iter().map(node))
    }

    /// Whether the nodes are enough, and not too many.
    pub(crate) fn are_enough(&self, limits: DurabilityLimits) -> bool {
        self.chains.iter().all(|chain| {
            let placed = chain.placed_count();
            let has_majority = placed >= chain.majority() || limits.fallback_to_master_ack;
            has_majority && placed <= limits.replicas_max + 1
        })
    }

    /// Up to where a majority of every chain holds the prepares, the active nodes among it.
    ///
    /// Where too few nodes are placed for a majority, those that no client waits for are committed
    /// once the active node holds them: another node may have committed them, so that they are
    /// never aborted, and whoever reads their documents must not wait for a map with more nodes.
    pub(crate) fn satisfied(&self, limits: DurabilityLimits) -> Satisfied {
        self.chains.iter().fold(Satisfied::ALL, |all, chain| {
            let durable = chain.held_by_majority(&self.nodes);
            let is_short = chain.placed_count() < chain.majority();
            let alone = if is_short { self.nodes[0].held } else { durable };
            let held = if limits.fallback_to_master_ack { alone } else { durable };
            Satisfied {
                through: all.through.min(held),
                ownerless_through: all.ownerless_through.min(alone),
                durable_through: all.durable_through.min(durable),
            }
        })
    }
}

impl Chain {
    /// Nodes that are not placed count, too: they may hold what nobody here knows of.
    fn majority(&self) -> usize {
        self.slots.len() / 2 + 1
    }

    fn placed_count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    fn held_by_majority(&self, nodes: &[Node]) -> Seqno {
        let mut held = [Seqno(0); CHAIN_NODES_MAX];
        for (held, slot) in held.iter_mut().zip(&self.slots) {
            *held = slot.map_or(Seqno(0), |index| nodes[index].held);
        }
        let active = held[0];
        held.sort_unstable_by(|one, other| other.cmp(one));
        // As far as the last member of the majority; the active node has to be one (invariant 8).
        active.min(held[self.majority() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(text: &str) -> Topology {
        let node = |name: &str| (name != "-").then(|| name.to_owned());
        text.split('|').map(|chain| chain.split_whitespace().map(node).collect()).collect()
    }

    #[test]
    fn topologies_have_one_or_two_chains_of_one_to_four_nodes() {
        let cases = [
            ("a", Ok(())),
            ("a -", Ok(())),
            ("a - - -", Ok(())),
            ("a b c d", Ok(())),
            ("a b | b a", Ok(())),
            ("a b | c d", Ok(())),
            ("", Err(InvalidTopology::NodeCount)),
            ("a |", Err(InvalidTopology::NodeCount)),
            ("a b c d e", Err(InvalidTopology::NodeCount)),
            ("a | b | c", Err(InvalidTopology::ChainCount)),
            ("- b", Err(InvalidTopology::NoActive)),
            ("a b | - b", Err(InvalidTopology::NoActive)),
            ("a b b", Err(InvalidTopology::Duplicate)),
            ("a | b b", Err(InvalidTopology::Duplicate)),
        ];
        for (text, expected) in cases {
            assert_eq!(check_topology(&topology(text)), expected, "{text}");
            assert_eq!(Chains::new(&topology(text)).is_some(), expected.is_ok());
        }
        assert_eq!(check_topology(&Topology::new()), Err(InvalidTopology::ChainCount));
    }

    #[test]
    fn durability_needs_a_majority_of_placed_nodes_and_few_replicas() {
        let limits = DurabilityLimits::default();
        let fallback = DurabilityLimits { fallback_to_master_ack: true, ..limits };
        let cases = [
            ("a", true, true),
            ("a -", false, true),
            ("a b", true, true),
            ("a b -", true, true),
            ("a - -", false, true),
            ("a b c", true, true),
            ("a b c d", false, false),
            ("a b c -", true, true),
            ("a b - -", false, true),
            ("a b | a -", false, true),
            ("a b | c d", true, true),
        ];
        for (text, without, with) in cases {
            let chains = Chains::new(&topology(text)).unwrap();
            assert_eq!(chains.are_enough(limits), without, "{text}");
            assert_eq!(chains.are_enough(fallback), with, "{text} with fallback");
        }
    }

    #[test]
    fn what_a_majority_with_the_active_nodes_holds_is_satisfied() {
        let (limits, held) = (DurabilityLimits::default(), [("a", 9), ("b", 5), ("c", 7)]);
        // By a majority, and by as many as are placed.
        let cases = [
            ("a", 9, 9),
            ("b", 5, 5),
            ("a b", 5, 5),
            ("a -", 0, 9),
            ("a b c", 7, 7),
            ("b a c", 5, 5),
            ("a c -", 7, 7),
            ("a - -", 0, 9),
            ("a b c -", 5, 5),
            ("a c - -", 0, 9),
            ("a b | a c", 5, 5),
            ("a b | a -", 0, 5),
            ("a - | a -", 0, 9),
            ("a c | c a", 7, 7),
            ("a c | d a", 0, 0),
        ];
        for (text, expected, expected_alone) in cases {
            let mut chains = Chains::new(&topology(text)).unwrap();
            for (name, seqno) in held {
                for node in chains.nodes.iter_mut().filter(|node| *node.name == *name) {
                    node.held = Seqno(seqno);
                }
            }
            let without = chains.satisfied(limits);
            assert_eq!(without.through, Seqno(expected), "{text}");
            let fallback = DurabilityLimits { fallback_to_master_ack: true, ..limits };
            let with = chains.satisfied(fallback);
            assert_eq!(with.through, Seqno(expected_alone), "{text} with fallback");
            for satisfied in [without, with] {
                assert_eq!(satisfied.ownerless_through, Seqno(expected_alone), "{text}");
            }
            assert_eq!(with.durable_through, Seqno(expected), "{text} with fallback");
        }
    }
}
