//! Objects in an S3-compatible store.
use super::target::{Object, Target};
use platform::Files;
use std::path::Path;
use std::sync::Arc;
/// How
#[derive(Clone, Debug, clap::Args)]
pub(super) struct S3Settings {}
pub(super) struct S3Target;
impl S3Target {
    pub(super) fn open(_: &str, _: &S3Settings, _: Arc<dyn Files>) -> anyhow::Result<Self> {
        anyhow::bail!("no s3")
    }
}
impl Target for S3Target {
    fn describe(&self) -> String {
        String::new()
    }
    fn list(&self, _: &str) -> anyhow::Result<Vec<Object>> {
        Ok(vec![])
    }
    fn get(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<bool> {
        Ok(false)
    }
    fn put_file(&self, _: &str, _: &Path) -> anyhow::Result<()> {
        Ok(())
    }
    fn delete(&self, _: &str) -> anyhow::Result<()> {
        Ok(())
    }
    fn spool_directory(&self) -> &Path {
        Path::new("")
    }
    fn files(&self) -> &dyn Files {
        unimplemented!()
    }
}
