//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// A lean Filecoin prover: a commit-phase-1 output in, verified Groth16 proofs out.
#[derive(Parser, Debug)]
#[command(name = "berth", version = crate::command::VERSION, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Settings are BERTH_* variables; `berth plan` prints each with its value and origin.

Exit codes: 0 done, 2 usage or configuration, 3 host resources, 4 parameters, 5 input,
6 proof did not verify, 7 device.";

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Prove a request, verify the proof, then print it
    #[command(after_help = "\
Examples:
  berth prove c1.json --miner 1000 --sector 7 --out proof.bin
  berth prove commit-phase1-output --registered-proof StackedDrg32GiBV1_1
  berth prove --kind window --vanilla post.vanilla.json --meta post.meta.json --json")]
    Prove(Prove),
    /// Check a proof against the request it was made for
    #[command(after_help = "\
Examples:
  berth verify c1.json proof.bin
  berth verify --kind snap --vanilla snap.json --meta snap.meta.json proof.hex")]
    Verify(Verify),
    /// Print what would be mapped, placed and started, and why; maps nothing
    #[command(after_help = "\
Examples:
  berth plan c1.json
  BERTH_SLOTS=4 berth plan --circuit porep-32g --json")]
    Plan(Plan),
    /// List, check or make Groth16 parameters
    #[command(subcommand)]
    Params(Params),
    /// Say what of this host is right for the service, and how to mend what is not
    #[command(after_help = "\
Examples:
  berth doctor
  berth doctor --circuit porep-32g --json
  berth doctor --circuit porep-32g --sysroot /tmp/host

Files of another host for --sysroot, all as its kernel writes them; collect them in bash on it, in
the control group and with the limits of the service (files of /proc and /sys have no size, so they
are read with cat; empty files of the names of /dev/nvidia* stand for the device files):
  cd / && for f in proc/self/{status,limits,cgroup,mountinfo,numa_maps} proc/{meminfo,swaps} \\
    proc/sys/kernel/{osrelease,numa_balancing} proc/sys/vm/zone_reclaim_mode \\
    proc/driver/nvidia/version proc/driver/nvidia/gpus/*/information \\
    sys/devices/system/cpu/{online,isolated,nohz_full} \\
    sys/devices/system/cpu/cpu[0-9]*/{topology/thread_siblings_list,cpufreq/scaling_governor} \\
    sys/devices/system/node/node*/{cpulist,meminfo,distance,hugepages/*/*_hugepages} \\
    sys/kernel/mm/hugepages/*/*_hugepages sys/kernel/mm/transparent_hugepage/* \\
    sys/bus/pci/devices/*/{vendor,device,class,numa_node,*_link_speed,*_link_width} \\
    $(find sys/fs/cgroup -name 'memory.*' -o -name 'hugetlb.*'); do [ -f $f ] && \\
    mkdir -p /tmp/host/${f%/*} && cat $f >/tmp/host/$f || rm /tmp/host/$f; done 2>/dev/null; \\
    tar -C /tmp -czf /tmp/host.tgz host
The lines of build, parameters, state and libcuda still describe this host.")]
    Doctor(Doctor),
    /// Print the service's unit, and that of the hugepages which its plan needs at boot
    #[command(after_help = "\
Examples:
  berth unit --circuit porep-32g
  berth unit --circuit porep-32g update-32g --out /etc/systemd/system")]
    Unit(Unit),
}

/// Where a request is read from.
#[derive(Args, Debug, Default)]
pub struct Request {
    /// Kind of proof, when it is not a PoRep C1
    #[arg(long, value_enum, requires = "vanilla")]
    pub kind: Option<PostKind>,
    /// JSON array of base64 vanilla proofs, for --kind
    #[arg(long, value_name = "FILE", requires = "kind")]
    pub vanilla: Option<PathBuf>,
    /// JSON object with the public values: miner_id or prover_id, registered_proof, randomness and
    /// sectors of a PoSt, or the three commitments of an update
    #[arg(long, value_name = "FILE")]
    pub meta: Option<PathBuf>,
    /// Miner id (number, f01000 or t01000): the replica id is then recomputed and compared
    #[arg(long, value_name = "ID", conflicts_with = "kind", value_parser = miner_id)]
    pub miner: Option<u64>,
    /// Sector number, with --miner
    #[arg(long, value_name = "N", conflicts_with = "kind")]
    pub sector: Option<u64>,
    /// Proof type of a binary C1, which does not carry one
    #[arg(long, value_name = "NAME", conflicts_with = "kind")]
    pub registered_proof: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PostKind {
    Window,
    Winning,
    Snap,
}

#[derive(Args, Debug)]
pub struct Prove {
    /// Commit-phase-1 output: JSON wrapper, bare JSON, task or bincode; found by content
    #[arg(value_name = "C1", required_unless_present = "kind", conflicts_with = "kind")]
    pub c1: Option<PathBuf>,
    #[command(flatten)]
    pub request: Request,
    /// Write the proof's raw bytes to this file, whole or not at all; a file that is there is
    /// replaced, anything else is refused
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Make the full vanilla check of a C1 first, also of what no circuit reads; without it the
    /// witness finds what does not fit, before anything is proven of it
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Verify {
    /// The request, then the proof (raw bytes or hex); with --kind the proof alone
    #[arg(value_name = "C1 PROOF", num_args = 1..=2, required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub request: Request,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("planned").args(["c1", "circuit", "kind"]).required(true)))]
pub struct Plan {
    /// Plan for the circuit of this C1
    #[arg(value_name = "C1")]
    pub c1: Option<PathBuf>,
    #[command(flatten)]
    pub request: Request,
    /// Plan for these circuits, such as porep-32g
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub circuit: Vec<String>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand, Debug)]
pub enum Params {
    /// Names, CIDs, digests, sizes, and what is found on this host
    List {
        /// Only these circuits
        #[arg(long, value_name = "NAME", num_args = 1..)]
        circuit: Vec<String>,
        /// Print one JSON object on standard output
        #[arg(long)]
        json: bool,
    },
    /// Check parameter files: digest, every point on its curve and in its subgroup
    Check {
        /// Circuits to check
        #[arg(value_name = "CIRCUIT", required = true, num_args = 1..)]
        circuit: Vec<String>,
    },
    /// Make parameters for trying and testing; proofs made with them are valid on no network
    MakeDev {
        /// Circuits to make parameters for
        #[arg(value_name = "CIRCUIT", required = true, num_args = 1..)]
        circuit: Vec<String>,
        /// Replace dev parameters that are there
        #[arg(long)]
        force: bool,
        /// Also those of sectors of 32 GiB and 64 GiB: files of tens of gigabytes
        #[arg(long)]
        large: bool,
    },
}

#[derive(Args, Debug)]
pub struct Doctor {
    /// Also plan for these circuits, such as porep-32g; else for the small ones of BERTH_CIRCUITS
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub circuit: Vec<String>,
    /// Read proc, sys and dev under this folder, such as the files of another host; settings,
    /// parameters and libcuda are this host's
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub sysroot: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Unit {
    /// Circuits to plan for, such as porep-32g; else BERTH_CIRCUITS, else all that have official
    /// parameters here
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub circuit: Vec<String>,
    /// Write the units as files into this folder; a file that is there is replaced
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// A miner's numeric id, alone or as an f0 or t0 address.
fn miner_id(text: &str) -> Result<u64, String> {
    crate::input::miner_id(text)
        .ok_or_else(|| "write a number such as 1000, or an address such as f01000".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn miner_ids() {
        assert_eq!(miner_id("1000"), Ok(1000));
        assert_eq!(miner_id("f01000"), Ok(1000));
        assert_eq!(miner_id("t00"), Ok(0));
        for wrong in ["", "f0", "f1abc", "-1", "+1", "1 ", "99999999999999999999"] {
            assert!(miner_id(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_request_is_one_thing() {
        for wrong in [
            &["berth", "prove"][..],
            &["berth", "prove", "c1", "--kind", "window", "--vanilla", "v"],
            &["berth", "prove", "--kind", "window"],
            &["berth", "prove", "--kind", "window", "--vanilla", "v", "--miner", "1"],
            &["berth", "verify", "--kind", "window", "--vanilla", "v", "p", "--sector", "1"],
            &["berth", "plan"],
            &["berth", "plan", "c1", "--circuit", "porep-2k"],
            &["berth", "plan", "--kind", "window", "--vanilla", "v", "--circuit", "porep-2k"],
            &["berth", "params", "make-dev"],
        ] {
            assert!(Cli::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
        for right in [
            &["berth", "prove", "c1.json", "--json"][..],
            &["berth", "plan", "c1.json"],
            &["berth", "plan", "--circuit", "porep-2k", "window-2k"],
            &["berth", "plan", "--kind", "window", "--vanilla", "v", "--meta", "m"],
        ] {
            assert!(Cli::try_parse_from(right).is_ok(), "{right:?}");
        }
    }
}
