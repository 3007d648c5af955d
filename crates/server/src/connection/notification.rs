//! Telling a connection that the cluster's map has changed. Source: docs/specification/protocol.md,
//! section 23.1.

use std::sync::Arc;

use protocol::Feature;
use protocol::request::MapVersion;
use protocol::server_request::ClusterMapChanged;

use super::state::Connection;
use super::turn::Turn;
use crate::cluster_view::RenderedMap;
use crate::shared::Shared;

impl Connection {
    /// The map that counts now for what it has selected: the bucket's, or the global one.
    pub(crate) fn map(&self, shared: &Shared) -> Arc<RenderedMap> {
        self.bucket.as_ref().map_or(&shared.global_map, |bucket| &bucket.map).get()
    }

    /// Sends the map that counts now, or its version, to a client that has asked for that and does
    /// not have it. A client that reads slowly gets none: it hears of the map when it meets it.
    pub(crate) fn push_map(&mut self, turn: &mut Turn<'_>) {
        // First: whose user may not use the bucket any more is let go, and gets no map of it.
        self.renew_rights(turn);
        let is_brief = self.features.contains(Feature::ClustermapChangeNotificationBrief);
        let is_full = self.features.contains(Feature::ClustermapChangeNotification);
        let listens = (is_brief || is_full) && self.is_authenticated() && !self.is_closing;
        let map = self.map(turn.shared);
        if !listens || turn.is_output_full() || self.known_map >= Some(map.revision) {
            return;
        }
        self.known_map = Some(map.revision);
        let notification = ClusterMapChanged {
            version: MapVersion { epoch: map.revision.epoch, revision: map.revision.revision },
            bucket: self.bucket.as_ref().map_or("", |bucket| bucket.name()),
            map: if is_brief { "" } else { &map.config },
        };
        notification.encode(&mut turn.output.buffer);
    }
}
