//! The scenario `facts`: what `longtake drives --json` says of six drives agrees with nvme-cli, field by
//! field.
//!
//! [`agreement`] has the fields. What one side has and the other lacks is a disagreement too, and so is a log
//! that one of them calls unsupported and the other reads.

mod agreement;

use anyhow::{Context, Result, bail};

use super::scenario::{Guest, Scenario, Stage};
use agreement::{Agreement, Namespace};

/// See the module.
#[derive(Debug)]
pub struct Facts;

/// For every namespace, both programs one right after the other, so that counters can't move between
/// them. What nvme-cli can't read leaves a file without JSON.
const SCRIPT: &str = r#"
: > /tmp/namespaces
for path in /sys/block/nvme[0-9]n[0-9]; do
    namespace=$(basename $path)
    id=$(cat $path/nsid)
    # Counters other than zero, so that mistaken units show.
    dd if=/dev/zero of=/dev/$namespace bs=1M count=5 oflag=direct 2> /dev/null
    dd if=/dev/$namespace of=/dev/null bs=64k count=40 iflag=direct 2> /dev/null
    longtake drives --json /dev/$namespace > /tmp/longtake
    controller=$(sed -n 's/.*"controller_node": "\/dev\/\(nvme[0-9]*\)".*/\1/p' /tmp/longtake)
    echo "$namespace $controller $id" >> /tmp/namespaces
    ask() {
        name=$1
        shift
        nvme "$@" -o json > /tmp/$namespace.$name 2> /dev/null || echo "failed: $?" > /tmp/$namespace.$name
    }
    mv /tmp/longtake /tmp/$namespace.longtake
    ask smart-log smart-log /dev/$controller
    ask id-ctrl id-ctrl /dev/$controller
    ask id-ns id-ns /dev/$controller -n $id
    ask list-ns list-ns /dev/$controller
    ask supported-log-pages supported-log-pages /dev/$controller
    ask endurance-log endurance-log /dev/$controller -g 1
    ask id-nvmset id-nvmset /dev/$controller
    ask fdp-configs fdp configs /dev/$controller -e 1
    ask fdp-stats fdp stats /dev/$controller -e 1
    give /tmp/$namespace.*
done
nvme list-subsys -o json > /tmp/list-subsys
nvme list -v -o json > /tmp/list
longtake drives --json > /tmp/longtake
longtake drives > /tmp/table
longtake drives /dev/nvme0n1 > /tmp/details
give /tmp/namespaces /tmp/list-subsys /tmp/list /tmp/longtake /tmp/table /tmp/details
"#;

impl Scenario for Facts {
    fn name(&self) -> &'static str {
        "facts"
    }

    fn about(&self) -> &'static str {
        "what longtake says of drives agrees with nvme-cli, field by field"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let files = &stage.run_alone(&Guest::new(SCRIPT))?;
        let namespaces = files.text("namespaces")?;
        let mut agreement = Agreement::default();
        let mut serials = std::collections::BTreeSet::new();
        let mut count = 0;
        for line in namespaces.lines() {
            let [name, controller, id] = line.split(' ').collect::<Vec<_>>()[..] else {
                bail!("the guest lists {line:?}, not a namespace, its controller and its number");
            };
            let ours = files.json(&format!("{name}.longtake"))?;
            let namespace = Namespace {
                name,
                controller,
                id: id.parse().with_context(|| format!("the number of {name} is {id:?}"))?,
                ours: ours.get(0).with_context(|| format!("longtake says nothing of {name}"))?,
            };
            let theirs = |what: &str| files.json(&format!("{name}.{what}")).ok();
            agreement.controller(&namespace, &theirs("id-ctrl").context("no id-ctrl")?);
            agreement.namespace(&namespace, &theirs("id-ns").context("no id-ns")?);
            agreement.health(&namespace, &theirs("smart-log").context("no smart-log")?);
            agreement.active_namespaces(&namespace, &theirs("list-ns").context("no list-ns")?);
            agreement.supported_logs(&namespace, theirs("supported-log-pages").as_ref());
            agreement.endurance_group(&namespace, theirs("endurance-log").as_ref());
            agreement.nvm_sets(&namespace, theirs("id-nvmset").as_ref());
            agreement.placement(
                &namespace,
                theirs("fdp-configs").as_ref(),
                theirs("fdp-stats").as_ref(),
            );
            agreement.list(&namespace, &files.json("list")?);
            agreement.subsystem(&namespace, &files.json("list-subsys")?);
            serials.insert(namespace.ours["drive"]["serial"].to_string());
            count += 1;
        }
        if (serials.len(), count) != (6, 8) {
            bail!("{count} namespaces of {} drives were compared, not 8 of 6", serials.len());
        }
        let mut shown = agreement.verdict()?;
        shown.insert(0, format!("{} drives, {count} namespaces", serials.len()));
        Ok(shown)
    }
}
