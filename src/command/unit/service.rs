//! The text of `berth.service`.

use std::path::{Component, Path};

use super::{Needs, PAGES, paths, word};
use crate::command::VERSION;
use crate::config::Config;

/// Beyond the drain time: for the journal, and for a lane to come to its end.
const STOP_MARGIN_SECONDS: u64 = 60;
/// To map and populate, beyond what reading parameters takes.
const START_SECONDS: u64 = 300;
/// A disk that is no faster than this makes start-up too long for the unit. Parameters are read
/// twice at the first start: to compare their digest, then into the arena.
const READ_BYTES_PER_SECOND: usize = 50_000_000;

/// The unit.
pub(super) fn text(needs: &Needs, config: &Config) -> String {
    let mut lines = head(needs);
    lines.extend(service(needs, config));
    lines.extend(limits(needs));
    lines.extend(folders(config));
    lines.extend(HARDENING.lines().map(str::to_owned));
    lines.extend(["".to_owned(), "[Install]".to_owned(), "WantedBy=multi-user.target".to_owned()]);
    lines.join("\n") + "\n"
}

fn head(needs: &Needs) -> Vec<String> {
    let names: Vec<String> = needs.circuits.iter().map(|id| id.to_string()).collect();
    let mut lines = vec![
        format!("# Printed by berth {VERSION}: berth unit --circuit {}", names.join(" ")),
        "# Print it anew after a change of circuits, settings or host.".to_owned(),
        "# Once: useradd -r -U -d /var/lib/berth -s /usr/sbin/nologin berth".to_owned(),
        String::new(),
        "[Unit]".to_owned(),
        "Description=Berth, a Filecoin prover".to_owned(),
    ];
    // The service may not gain rights, so it cannot make device files: what does comes first.
    let mut after = "network.target nvidia-persistenced.service".to_owned();
    if !needs.pools.is_empty() {
        lines.push(format!("Requires={PAGES}"));
        after = format!("{PAGES} {after}");
    }
    lines.push(format!("After={after}"));
    lines.extend(["StartLimitIntervalSec=600".to_owned(), "StartLimitBurst=3".to_owned()]);
    lines
}

fn service(needs: &Needs, config: &Config) -> Vec<String> {
    let start = START_SECONDS + (needs.srs_bytes / READ_BYTES_PER_SECOND) as u64;
    let stop = config.drain_timeout.as_secs() + STOP_MARGIN_SECONDS;
    let mut lines = vec![String::new(), "[Service]".to_owned(), "Type=notify".to_owned()];
    if !needs.serves {
        lines.push("# The build that printed this has no command serve: it exits with 2.".into());
    }
    // In this word alone systemd looks for no variables.
    lines.push(format!("ExecStart={} serve", word(&needs.program)));
    for (name, value) in &needs.settings {
        lines.push(format!("Environment={}", word(&format!("{name}={value}"))));
    }
    lines.extend([
        "User=berth".to_owned(),
        "Group=berth".to_owned(),
        "Restart=on-failure".to_owned(),
        "RestartSec=10".to_owned(),
        "# Settings and parameters that are wrong stay wrong.".to_owned(),
        "RestartPreventExitStatus=2 4".to_owned(),
        "# Parameters are read twice at the first start, at 100 MB/s or more.".to_owned(),
        format!("TimeoutStartSec={start}"),
        "# BERTH_DRAIN_TIMEOUT and a minute.".to_owned(),
        format!("TimeoutStopSec={stop}"),
        "WatchdogSec=60".to_owned(),
    ]);
    lines
}

fn limits(needs: &Needs) -> Vec<String> {
    vec![
        "# All arenas, rounded up to pages. What is in hugetlb pages is not counted by the kernel;"
            .to_owned(),
        "# the rest, or all of it with BERTH_HUGEPAGES=off, is locked.".to_owned(),
        format!("LimitMEMLOCK={}", needs.arena_bytes),
        "LimitNOFILE=65536".to_owned(),
        "# A core would be as large as the arenas.".to_owned(),
        "LimitCORE=0".to_owned(),
        "MemorySwapMax=0".to_owned(),
        "OOMScoreAdjust=-900".to_owned(),
    ]
}

/// Where the service writes.
fn folders(config: &Config) -> Vec<String> {
    let mut lines = vec!["RuntimeDirectory=berth".to_owned()];
    let written = paths::written(config);
    let mut open: Vec<&Path> = written.iter().map(|(_, folder)| *folder).collect();
    let state = config.state_dir.strip_prefix("/var/lib").unwrap_or(Path::new(""));
    if state.components().any(|part| matches!(part, Component::Normal(_))) {
        lines.push(format!("StateDirectory={}", word(&state.display().to_string())));
        open.retain(|folder| *folder != config.state_dir);
    }
    open.sort();
    open.dedup();
    if !open.is_empty() {
        lines.push(
            "# Journal, sockets or stamps of parameters go there, where all else of the".into(),
        );
        lines.push(
            "# host is closed to writing. systemd makes none of these: they must be there.".into(),
        );
    }
    let line = |folder: &Path| format!("ReadWritePaths={}", word(&folder.display().to_string()));
    lines.extend(open.into_iter().map(line));
    lines
}

/// Not here, because it would break something: PrivateTmp (parameters lie in /var/tmp by default),
/// PrivateDevices, DevicePolicy and ProtectClock (cards), ProcSubset (/proc/meminfo),
/// ProtectHome=yes (parameters may lie there), MemoryDenyWriteExecute (CUDA compiles).
const HARDENING: &str = "\
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native";
