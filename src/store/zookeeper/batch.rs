//! A request that writes several nodes, all or none. Servers close the connection of a client whose request is too large, and its other
//! calls lose their answers: such a request is refused here and never sent.

use std::future::Future;

use zookeeper_client::{Client, CreateOptions, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use super::fault::Fault;
use crate::store::ErrorKind;

/// The most bytes of a request: what servers take unless `jute.maxbuffer` says otherwise, less the request's own head.
const MOST_BYTES: usize = 0xf_ffff - 1_024;

/// What an operation takes besides its path and its data: numbers, and who may use a node that is made.
const OPERATION: usize = 128;

pub(super) struct Batch<'c> {
    writer: MultiWriter<'c>,
    bytes: usize,
}

impl<'c> Batch<'c> {
    pub(super) fn new(client: &'c Client) -> Self {
        Self { writer: client.new_multi_writer(), bytes: 0 }
    }

    pub(super) fn add_check_version(&mut self, path: &str, version: i32) -> Result<(), Error> {
        self.count(path, b"");
        self.writer.add_check_version(path, version)
    }

    pub(super) fn add_create(&mut self, path: &str, data: &[u8], options: &CreateOptions<'_>) -> Result<(), Error> {
        self.count(path, data);
        self.writer.add_create(path, data, options)
    }

    pub(super) fn add_set_data(&mut self, path: &str, data: &[u8], version: Option<i32>) -> Result<(), Error> {
        self.count(path, data);
        self.writer.add_set_data(path, data, version)
    }

    pub(super) fn add_delete(&mut self, path: &str, version: Option<i32>) -> Result<(), Error> {
        self.count(path, b"");
        self.writer.add_delete(path, version)
    }

    const fn count(&mut self, path: &str, data: &[u8]) {
        self.bytes = self.bytes.saturating_add(path.len()).saturating_add(data.len()).saturating_add(OPERATION);
    }

    /// Refuses a request that is too large.
    pub(super) fn check(&self) -> Result<(), Fault> {
        refuse(self.bytes)
    }

    pub(super) fn commit(
        &mut self,
    ) -> impl Future<Output = Result<Vec<MultiWriteResult>, MultiWriteError>> + Send + use<'c> {
        self.writer.commit()
    }
}

fn refuse(bytes: usize) -> Result<(), Fault> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let kib = |bytes: usize| bytes.div_ceil(1_024);
    let message =
        format!("a request of {} KiB is refused: servers take {} (jute.maxbuffer)", kib(bytes), kib(MOST_BYTES));
    Err(Fault::new(ErrorKind::Content, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Applied, Op};

    #[test]
    fn a_request_that_would_break_the_connection_is_refused_for_its_content_and_was_not_applied() {
        assert!(refuse(MOST_BYTES).is_ok());
        let error = refuse(MOST_BYTES + 1).unwrap_err().into_error(Op::Complete, false, "zookeeper://h");
        assert_eq!((error.kind, error.applied), (ErrorKind::Content, Applied::No));
        assert!(error.message.contains("jute.maxbuffer"), "{error}");
    }
}
