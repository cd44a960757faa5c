#!/bin/sh
# Start a node: start.sh FOLDER, with a folder that `python -m tools.cluster.write` made. workerd replaces this shell; when it
# serves, the migrations that the cluster's database lacks are applied. Environment, besides the Worker's secrets:
#   OBJECTS       the node's own disk for Durable Objects; the bucket has what counts
#   HTTP_ADDR     where requests are served                   MIGRATE_ADDR  where migrations are asked for: loopback alone
#   CLUSTER_ADDR  where the other nodes reach this one        CLUSTER_ADVERTISE  its address for them, if it differs
#   WORKERD       the program
set -eu
: "${OBJECTS:?the folder for the node's Durable Objects}"
: "${MIGRATE_ADDR:=127.0.0.1:8788}" "${HTTP_ADDR:=127.0.0.1:8787}" "${CLUSTER_ADDR:=127.0.0.1:7000}"
mkdir -p "$OBJECTS"
cd "$1"
(
  attempts=0
  until curl --noproxy '*' --silent --fail --max-time 120 --request POST "http://$MIGRATE_ADDR/"; do
    attempts=$((attempts + 1))
    if [ "$attempts" -gt 300 ]; then
      echo "the migrations were not applied: requests are answered with schema_outdated" >&2
      exit 1
    fi
    sleep 1
  done
) &
exec "${WORKERD:-workerd}" serve --experimental --verbose --pyodide-bundle-disk-cache-dir=pyodide \
  --directory-path="objects=$OBJECTS" --socket-addr="http=$HTTP_ADDR" --socket-addr="migrate=$MIGRATE_ADDR" \
  --cluster-addr="$CLUSTER_ADDR" ${CLUSTER_ADVERTISE:+--cluster-advertise="$CLUSTER_ADVERTISE"} config.capnp
