//! The request that a series proves over and over.

use std::path::PathBuf;

use berth::error::{Error, Result};
use berth::input::{
    self, C1_BYTES_MAX, Input, META_BYTES_MAX, Meta, PorepOptions, VANILLA_BYTES_MAX, class,
    read_file,
};
use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// Kind of proof
    #[arg(long = "type", value_enum, default_value = "porep")]
    pub kind: Kind,
    /// Commit-phase-1 output, for porep
    #[arg(long, value_name = "FILE")]
    pub c1: Option<PathBuf>,
    /// JSON array of base64 vanilla proofs, for the other kinds
    #[arg(long, value_name = "FILE", conflicts_with = "c1")]
    pub vanilla: Option<PathBuf>,
    /// JSON object with the public values, beside --vanilla
    #[arg(long, value_name = "FILE")]
    pub meta: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Porep,
    Window,
    Winning,
    Snap,
}

impl SourceArgs {
    /// The same arguments for a child.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let kind = self.kind.to_possible_value().expect("every kind has a name");
        let mut arguments = vec!["--type".into(), kind.get_name().into()];
        for (name, file) in
            [("--c1", &self.c1), ("--vanilla", &self.vanilla), ("--meta", &self.meta)]
        {
            if let Some(file) = file {
                arguments.extend([name.into(), file.into()]);
            }
        }
        arguments
    }
}

/// The bytes of a request.
pub struct Source {
    kind: Kind,
    bytes: Vec<u8>,
    meta: Option<Meta>,
}

impl Source {
    /// Reads the files.
    ///
    /// # Errors
    /// [`Error::Input`] naming the file.
    pub fn read(args: &SourceArgs) -> Result<Self> {
        let porep = args.kind == Kind::Porep;
        let (file, max) =
            if porep { (&args.c1, C1_BYTES_MAX) } else { (&args.vanilla, VANILLA_BYTES_MAX) };
        let file = file.as_deref().ok_or_else(|| {
            Error::Config("porep takes --c1, other kinds --vanilla and --meta".into())
        })?;
        let meta = args.meta.as_deref().map(|file| Meta::parse(&read_file(file, META_BYTES_MAX)?));
        Ok(Source { kind: args.kind, bytes: read_file(file, max)?, meta: meta.transpose()? })
    }

    /// The request, parsed and checked anew as a service would.
    ///
    /// # Errors
    /// [`Error::Input`] saying where and what.
    pub fn parse(&self) -> Result<Input> {
        let kind = match self.kind {
            Kind::Porep => {
                let options = PorepOptions { meta: self.meta.clone(), ..PorepOptions::default() };
                return input::read_porep(&self.bytes, &options);
            }
            Kind::Window => class::Kind::Window,
            Kind::Winning => class::Kind::Winning,
            Kind::Snap => class::Kind::Update,
        };
        let meta = self.meta.as_ref().ok_or_else(|| {
            Error::Config("this kind needs --meta FILE with the public values".into())
        })?;
        input::read_vanilla(kind, &self.bytes, meta)
    }
}
