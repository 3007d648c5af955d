//! The other node is given up, and taken in again.

use document::VbucketState;

use super::Run;
use super::acknowledged::Lost;
use crate::support::VBID;

impl Run {
    /// Whatever of this comes next.
    pub(super) fn change_membership(&mut self) {
        if self.is_given_up {
            self.take_in();
        } else {
            self.give_up();
        }
    }

    /// The other node does not answer and has no place any more. What was sent to it may still
    /// reach it.
    fn give_up(&mut self) {
        self.note_commits();
        self.is_given_up = true;
        self.nodes[self.active].be_active_with(None);
        if let Some(link) = &mut self.link {
            link.is_cut = true;
        }
        if self.below(2) == 0 {
            self.nodes[1 - self.active].take_role(VbucketState::Dead);
        }
    }

    /// It follows again, with what it has or with nothing.
    pub(super) fn take_in(&mut self) {
        if !std::mem::take(&mut self.is_given_up) {
            return;
        }
        self.link = None;
        let is_dead = self.nodes[1 - self.active].is_dead();
        if is_dead && self.below(3) == 0 {
            self.note_loss(Lost::Everything);
            self.nodes[1 - self.active].fill_disk(false);
            self.target().bucket.delete_vbucket(VBID).unwrap();
        }
        self.nodes[1 - self.active].take_role(VbucketState::Replica);
        self.nodes[self.active].take_role(VbucketState::Active);
        self.note_commits();
    }
}
