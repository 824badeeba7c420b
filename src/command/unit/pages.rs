//! The text of `berth-hugepages.service`: a one-shot of root that reserves pages at boot, before
//! memory is fragmented.

use super::{Needs, SERVICE};
use crate::command::VERSION;

/// Reserves pages for every three arguments: folder below sysfs, page size in kB, pages. Pages that
/// others hold are left to them, so it raises the pool by what is not free. It fails when the
/// kernel gives fewer, and says so for every pool that is short. No single quote, backslash or
/// percent sign may stand here: it is quoted for systemd.
const SCRIPT: &str = "\
sys=${SYSFS:-/sys}; short=0;
while [ $# -ge 3 ]; do
  pool=$sys/$1/hugepages/hugepages-$2kB; total=0; free=0;
  if read -r total <$pool/nr_hugepages && read -r free <$pool/free_hugepages; then
    used=$((total - free));
    if [ $free -lt $3 ]; then echo $((used + $3)) >$pool/nr_hugepages; fi;
    read -r total <$pool/nr_hugepages; free=$((total - used));
  fi;
  if [ $free -lt $3 ]; then
    echo \"berth: $1: need $3 hugepages of $2 kB, free $free; memory is short or fragmented:\" \
\"reboot, or reserve them on the command line of the kernel (hugepagesz=, hugepages=)\" >&2;
    short=1;
  fi;
  shift 3;
done;
exit $short";

/// The unit.
pub(super) fn text(needs: &Needs) -> String {
    let mut rows = Vec::new();
    for pool in &needs.pools {
        let folder = if needs.numa {
            format!("devices/system/node/node{}", pool.node)
        } else {
            "kernel/mm".to_owned()
        };
        rows.push(format!("{folder} {} {}", pool.page_bytes / 1024, pool.pages));
    }
    // systemd joins lines that end in a backslash, and takes $$ for $.
    let script = SCRIPT.replace('$', "$$").replace('\n', " \\\n  ");
    format!(
        "# Printed by berth {VERSION} with {SERVICE}.\n\
         \n\
         [Unit]\n\
         Description=Hugepages for Berth\n\
         DefaultDependencies=no\n\
         Conflicts=shutdown.target\n\
         Before={SERVICE} shutdown.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         # Then three words for each pool: folder below /sys, page size in kB, pages.\n\
         ExecStart=/bin/sh -c '{script}' \\\n  \
         berth-hugepages \\\n  \
         {}\n\
         \n\
         [Install]\n\
         WantedBy=sysinit.target\n",
        rows.join(" \\\n  ")
    )
}
