#!/usr/bin/env bash
# A SLURM of one node with two stand-in GPUs, for tests and for trying docs/cluster.md:
#   tests/slurm/one-node.sh start /tmp/one-node
#   tests/slurm/one-node.sh stop /tmp/one-node
# Needs root and Debian's packages slurm-wlm and munge. What it writes is in that folder, but for the
# link /etc/slurm/slurm.conf; where SLURM is configured already, it does nothing.
set -euo pipefail
what=$1 folder=$2
configuration=/etc/slurm/slurm.conf

stop() {
  # Jobs outlive the daemons.
  if [ -f "$folder/slurmctld.pid" ] && timeout 10 scancel --user="$(id -un)"; then
    timeout 40 bash -c 'while [ -n "$(squeue -h)" ]; do sleep 0.2; done' || true
  fi
  for daemon in slurmd slurmctld munged; do
    if [ -f "$folder/$daemon.pid" ]; then
      number=$(cat "$folder/$daemon.pid")
      kill "$number" 2>/dev/null || true
      timeout 30 bash -c "while kill -0 $number 2>/dev/null; do sleep 0.1; done" || true
    fi
  done
  if [ -L $configuration ]; then
    rm $configuration
  fi
}

if [ "$what" = stop ]; then
  stop
  exit
fi

if [ -e $configuration ]; then
  echo "SLURM is configured on this machine: $configuration" >&2
  exit 1
fi
mkdir -p /etc/slurm "$folder/state" "$folder/spool"
host=$(hostname -s)
cat >"$folder/slurm.conf" <<END
ClusterName=epcore
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
# A requeued job waits until its old credential has expired: not the usual two minutes.
AuthInfo=socket=$folder/munge.socket,cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
ReturnToService=2
MinJobAge=3600
EnforcePartLimits=ALL
# Memory is watched, because control groups are not everywhere.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=16000 Gres=gpu:2 State=UNKNOWN
PartitionName=cpu Nodes=$host Default=YES MaxTime=1-00:00:00 State=UP
PartitionName=gpu Nodes=$host MaxTime=1-00:00:00 State=UP
END
# Any character device will do for a GPU.
printf "NodeName=$host Name=gpu File=%s\n" /dev/null /dev/zero >"$folder/gres.conf"

head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
munged --force --key-file "$folder/munge.key" --socket "$folder/munge.socket" \
  --pid-file "$folder/munged.pid" --log-file "$folder/munged.log" --seed-file "$folder/munge.seed"
trap 'stop; cat "$folder"/*.log >&2' ERR
# A link, because Snakemake's plugin keeps SLURM_CONF from the programs that jobs start.
ln -sfn "$folder/slurm.conf" $configuration
slurmctld -f "$folder/slurm.conf"
slurmd -f "$folder/slurm.conf"
for _ in $(seq 30); do
  if [ "$(sinfo -h -o %t -p gpu 2>/dev/null)" = idle ]; then
    echo "SLURM's node $host is idle; $0 stop $folder ends it"
    exit
  fi
  sleep 1
done
echo "the node did not come up" >&2
false
