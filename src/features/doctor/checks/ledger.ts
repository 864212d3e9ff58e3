import { sharesClaims } from "../../../config/shared-claims";
import { count, some } from "../../../kernel/printing";
import { readCloneId } from "../../ledger/clone-id";
import { giveBacks, isConfirmed, issueOfLease, readConfirmations } from "../../ledger/confirmations";
import { LedgerCopy } from "../../ledger/copy";
import { examineLedger } from "../../ledger/examine";
import { GitRemote, SEEN_BRANCH } from "../../ledger/git-remote";
import { notConfigured } from "../../ledger/open";
import { ledgerPlace, networkWarning } from "../../ledger/place";
import { StateFile } from "../../ledger/state";
import { transportOf } from "../../ledger/transport";
import { type Check, fromError, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";

/** The ledger as this machine has seen it and as it is now, and claims that wait to be confirmed. */
export const ledgerCheck: Check = {
  name: "ledger",
  async look(patient) {
    const { values } = patient.config;
    if (values["sync.ledger_branch"] === null && sharesClaims(patient.config)) {
      const { message } = notConfigured(patient);
      return [warning(message, "run: cotenant trust, then: cotenant sync --setup-ledger")];
    }
    if (values["sync.ledger_branch"] === null)
      return [ok("claims are of this clone only: no ledger is configured")];
    try {
      const found = [...(await lookAtCopy(patient)), ...(await lookAtClaims(patient))];
      return found.length > 0 ? found : [ok(`the ledger's copy is whole, and every claim is confirmed`)];
    } catch (error) {
      return [fromError(error, "looking at the ledger", patient.repository.controlDir)];
    }
  },
};

async function lookAtCopy({ place, platform, repository, config }: Patient): Promise<Reported[]> {
  const { values } = config;
  const root = repository.worktreeRoot;
  const transport = await transportOf(place.git, {
    root,
    env: place.env,
    remote: values["sync.remote"] ?? "origin",
  });
  const override = values["sync.global_path_override"];
  const where = await ledgerPlace({
    platform,
    env: place.env,
    home: place.home,
    override,
    url: transport.url,
    root,
  });
  const copy = new LedgerCopy(platform, place.git, where, transport, {
    objectFormat: repository.config.objectFormat,
    timeoutMs: values["sync.network_timeout"] * 1000,
  });
  if (!(await copy.exists()))
    return [
      warning(
        `this machine has no copy of the ledger yet (${where.directory})`,
        "run: cotenant sync --setup-ledger",
      ),
    ];
  const found: Reported[] = [];
  const { status } = await copy.run(["cat-file", "-e", `${SEEN_BRANCH}^{commit}`]);
  const examined = status === 0 ? await examineLedger(copy, remoteOf(copy, config)) : null;
  if (examined?.ledger === "rewritten")
    found.push(
      warning(
        `the remote's ledger was rewritten: ${examined.why}`,
        "find out who did it; 'cotenant sync --force-resync' says what accepting it would mean",
      ),
    );
  else if (examined?.ledger === "not looked")
    found.push(note(`the ledger was not looked at: remote unreachable (${examined.why})`, "run it again"));
  for (const { issueId, why } of examined?.wild.slice(0, 20) ?? [])
    found.push(
      warning(
        `the claim on issue ${issueId} at the remote is not one that cotenant wrote, and nobody can take it: ${why}`,
        `find out who pushed it: git fetch ${transport.remote} ${remoteOf(copy, config).refOf(issueId)} && git log FETCH_HEAD`,
      ),
    );
  if (status !== 0)
    found.push(
      warning(
        `the ledger's copy is damaged, or was never filled (${where.copy})`,
        "run: cotenant sync (it makes a new one, and keeps the old)",
      ),
    );
  const reading = await new StateFile(copy).read();
  if (reading.warning !== null) found.push(warning(reading.warning, "run: cotenant sync"));
  const slow = await networkWarning(platform, where);
  if (slow !== null)
    found.push(warning(slow, "choose a local directory, then run: cotenant sync --setup-ledger"));
  const aside = ((await platform.files.readDirectory(where.directory)) ?? []).filter((name) =>
    /\.(?:broken|old)-/.test(name),
  );
  if (aside.length > 0)
    found.push(
      note(
        `${count(aside.length, "file")} put aside in ${where.directory}: ${some(aside)}`,
        "look at them, and delete them when nobody wants them",
      ),
    );
  return found;
}

function remoteOf(copy: LedgerCopy, { values }: Patient["config"]): GitRemote {
  return new GitRemote(copy, {
    prefix: values["sync.claims_prefix"] ?? "refs/cotenant/claims/",
    branch: values["sync.ledger_branch"]!,
  });
}

async function lookAtClaims(patient: Patient): Promise<Reported[]> {
  const { coordinator, platform, repository, hasStore } = patient;
  if (!hasStore) return [];
  const known = await readConfirmations(coordinator, "all");
  const cloneId = await readCloneId(platform, coordinator, repository.controlDir);
  const nowMs = platform.clock.wallMs();
  const valid = (await patient.leases()).filter(({ standing }) => standing === "valid");
  const held = valid.map(({ lease }) => lease);
  const provisional = held.flatMap((lease) => {
    const issueId = issueOfLease(lease);
    return issueId === null || isConfirmed(lease, known.get(issueId), cloneId, nowMs) ? [] : [issueId];
  });
  const waiting = giveBacks(known, held, nowMs);
  const open = [...known.values()].filter((claim) => claim.state === "unsettled" && !waiting.includes(claim));
  return [
    ...(provisional.length === 0
      ? []
      : [
          warning(
            `${count(provisional.length, "claim")} not confirmed by the ledger: other machines do not know of ${provisional.length === 1 ? "it" : "them"}`,
            "run: cotenant sync --reconcile",
            { issue_ids: provisional.slice(0, 100) },
          ),
        ]),
    ...(waiting.length === 0
      ? []
      : [
          note(
            `${count(waiting.length, "claim has", "claims have")} ended here, and the ledger has not heard of ${waiting.length === 1 ? "it: others may still see it" : "them: others may still see them"}`,
            "run: cotenant sync --reconcile",
            { issue_ids: waiting.slice(0, 100).map(({ issueId }) => issueId) },
          ),
        ]),
    ...(open.length === 0
      ? []
      : [
          note(
            `${count(open.length, "push", "pushes")} to the ledger without an answer; the next contact settles them`,
            "run: cotenant sync --reconcile",
          ),
        ]),
  ];
}
