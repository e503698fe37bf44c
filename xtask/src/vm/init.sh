#!/bin/busybox sh
# The guest's first process: mounts, modules, waits for the drives, runs the scenario's script, tells how
# it ended. Standard output is the console; the second serial port leads to the host.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
# Extracts of whole takes lie there.
mount -t tmpfs -o size=90% tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ifconfig lo 127.0.0.1 up

# Raw, so that files pass unchanged; kept open, so that it stays raw.
exec 9<>/dev/ttyS1
stty raw -echo -F /dev/ttyS1

finish() {
    echo "end $1" >&9
    # The host ends the machine once it has read that.
    sleep 60
    poweroff -f
}

cat > /bin/say <<'SAY'
#!/bin/sh
echo "say $*" >&9
SAY
cat > /bin/await <<'AWAIT'
#!/bin/sh
IFS= read -r line <&9
echo "$line"
AWAIT
cat > /bin/give <<'GIVE'
#!/bin/sh
set -e
for file in "$@"; do
    echo "file $(basename "$file") $(stat -c %s "$file")" >&9
    cat "$file" >&9
done
GIVE
# run NAME COMMAND...: what a command prints, what it complains and how it ends, as files NAME and NAME.errors that
# the host gets. Never fails.
cat > /bin/run <<'RUN'
#!/bin/sh
name=$1
shift
code=0
"$@" > "/tmp/$name" 2> "/tmp/$name.errors" || code=$?
echo "exit code $code" >> "/tmp/$name.errors"
give "/tmp/$name" "/tmp/$name.errors"
RUN
# account NAME PACKETS ARRAY [OPTION]: all that can be known of an array's last take, in files that begin with NAME.
# PACKETS describes the synthetic source: `--size 9000`.
cat > /bin/account <<'ACCOUNT'
#!/bin/sh
name=$1 packets=$2 array=$3
shift 3
run "$name.ledger" longtake ledger "$array" --json "$@"
run "$name.array" longtake array show "$array" --json --chunks "$@"
run "$name.check" longtake array check "$array" --json "$@"
# By way of a file: through a pipe two emulated processors would wait for each other most of the time.
run "$name.extract" longtake extract "$array" --take last --output "/tmp/$name.pcapng" --json "$@"
xtask vm packets $packets < "/tmp/$name.pcapng" > "/tmp/$name.packets"
give "/tmp/$name.packets"
rm "/tmp/$name.pcapng"
ACCOUNT
# The drivers number drives as they come, so scenarios name them: generic,SERIAL,NAMESPACE or
# block,SERIAL,NAMESPACE, or else a file. (nvme0c0n1 is a path to a drive and has no node.)
cat > /bin/nodes <<'NODES'
#!/bin/sh
found=
for drive in "$@"; do
    case $drive in
        generic,*) entries="/sys/class/nvme-generic/ng*n${drive##*,}" ;;
        block,*) entries="/sys/class/block/nvme*n${drive##*,}" ;;
        *) entries= found=$found${found:+,}$drive ;;
    esac
    serial=${drive#*,}
    for entry in $entries; do
        case ${entry##*/} in nvme*c*) continue ;; esac
        if [ "$(tr -d ' ' < "$entry/device/serial")" = "${serial%,*}" ]; then
            found=$found${found:+,}/dev/${entry##*/}
        fi
    done
done
echo "$found"
NODES
chmod +x /bin/say /bin/await /bin/give /bin/run /bin/account /bin/nodes

for module in $(cat /modules/order /scenario/modules); do
    case $module in nvme.ko*) options=$(cat /scenario/driver-options) ;; *) options= ;; esac
    # shellcheck disable=SC2086 # options are words
    # One may be made for another processor. If it was needed, no drive comes, and that is told below.
    insmod "/modules/$module" $options || echo "insmod $module failed"
done

# The driver finds its drives in the background. (nvme0c0n1 is a path to nvme0n1, not a drive.)
waited=0
until [ "$(ls /sys/block | grep -c '^nvme[0-9]*n[0-9]*$')" -ge "$(cat /scenario/namespaces)" ]; do
    waited=$((waited + 1))
    if [ $waited -gt 6000 ]; then
        echo "only these block devices have come: $(ls /sys/block)"
        finish 98
    fi
    sleep 0.1
done

sh -e /scenario/script
finish $?
