//! A connection that still gives the answer of a server that read only part of a request.

use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// Makes each connection one of this kind; `ureq` calls it between TCP and TLS.
#[derive(Debug)]
pub(super) struct Answering;

impl<In: Transport> Connector<In> for Answering {
    type Out = Answered<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(Answered))
    }
}

/// A connection that hides that the other side closed it during a request.
#[derive(Debug)]
pub(super) struct Answered<In>(In);

impl<In: Transport> Transport for Answered<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    /// Send; what the other side no longer takes is left out.
    ///
    /// A proxy may refuse a long body with 413, and close the connection before it has read the whole body. `ureq` would
    /// then not read the answer. Without an answer, reading fails too.
    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        match self.0.transmit_output(amount, timeout) {
            Err(Error::Io(error)) if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) => Ok(()),
            sent => sent,
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.0.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
