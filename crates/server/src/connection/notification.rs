//! Telling a connection that the cluster's map has changed. Source: protocol specification,
//! section 23.1.

use protocol::Feature;
use protocol::request::MapVersion;
use protocol::server_request::ClusterMapChanged;

use super::state::Connection;
use super::turn::Turn;

impl Connection {
    /// Sends the map that counts now, or its version, to a client that has asked for that and does
    /// not have it. A client that reads slowly gets none: it hears of the map when it meets it.
    pub(crate) fn push_map(&mut self, turn: &mut Turn<'_>) {
        let is_brief = self.features.contains(Feature::ClustermapChangeNotificationBrief);
        let is_full = self.features.contains(Feature::ClustermapChangeNotification);
        let listens = (is_brief || is_full) && self.is_authenticated() && !self.is_closing;
        let view = turn.shared.cluster.get();
        if !listens || turn.is_output_full() || self.known_map >= Some(view.revision) {
            return;
        }
        self.known_map = Some(view.revision);
        let config = if self.bucket.is_some() { &view.bucket_config } else { &view.global_config };
        let notification = ClusterMapChanged {
            version: MapVersion { epoch: view.revision.epoch, revision: view.revision.revision },
            bucket: self.bucket.as_ref().map_or("", |bucket| &bucket.config().name),
            map: if is_brief { "" } else { config },
        };
        notification.encode(&mut turn.output.buffer);
    }
}
