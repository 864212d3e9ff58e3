import { committedIn } from "../../config/committed";
import { readJoinedLedger } from "../../config/joined-ledger";
import { type Config, type ConfigQuestion, inspectConfig } from "../../config/load";
import type { ConfigProblem } from "../../config/problem";
import { NO_TRUST, readTrust, type Trust } from "../../config/trust";
import type { LeaseStatus } from "../../coordinator/contract";
import { LocalCoordinator } from "../../coordinator/local";
import type { MissedDaemon } from "../../coordinator/workspace";
import { type Environment, findRepository, type Repository } from "../../identity/repository";
import type { Ticket } from "../../kernel/tickets";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { type Layout, layoutOf, type Modes, modesFor } from "../../store/layout";
import { type LogSurvey, surveyLog } from "../../store/log-survey";
import { DEFAULT_STORE_OPTIONS, Store } from "../../store/store";

export interface PatientPlace {
  readonly platform: Platform;
  readonly git: Git;
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string | null;
  /** `/etc/cotenant` unless a test says otherwise. */
  readonly systemDirectory?: string;
  /** What somebody counts on a daemon for, while none is running. */
  readonly missedDaemon?: (patient: Patient) => Promise<MissedDaemon | null>;
}

/** What checks look at. Everything that may be broken is read by whoever needs it, and may throw there. */
export interface Patient {
  readonly place: PatientPlace;
  /** The place's, or what does for looking where the boot's id cannot be read. */
  readonly platform: Platform;
  readonly repository: Repository;
  readonly layout: Layout;
  readonly modes: Modes;
  /** Where the data plane is, or would be. */
  readonly dataDirectory: string;
  readonly question: ConfigQuestion;
  /** What can be used of the configuration; the defaults where nothing can. */
  readonly config: Config;
  readonly configProblems: readonly ConfigProblem[];
  /** Why a source could not even be read. */
  readonly configFailure: unknown;
  readonly trust: Trust;
  readonly trustFailure: unknown;
  readonly coordinator: LocalCoordinator;
  /** Whether there is a control plane at all. */
  readonly hasStore: boolean;
  log(): Promise<LogSurvey>;
  /** All that stand, lapsed ones too. */
  leases(): Promise<readonly LeaseStatus[]>;
  tickets(): Promise<{ readonly live: readonly Ticket[]; readonly void: readonly number[] }>;
}

/** Throws only where there is no repository, or Git keeps it from us. */
export async function examine(place: PatientPlace): Promise<Patient> {
  const { env, cwd, git, home } = place;
  const platform = withoutBoot(place.platform);
  const repository = await findRepository(platform, cwd, env, git);
  const { controlDir, worktreeRoot } = repository;
  const trusted = await attempt(() => readTrust(platform, controlDir));
  const trust = trusted.value ?? NO_TRUST;
  const system = place.systemDirectory === undefined ? {} : { systemDirectory: place.systemDirectory };
  const joined = (await attempt(() => readJoinedLedger(platform, controlDir))).value ?? null;
  const committed = committedIn(git, repository, env);
  const question: ConfigQuestion = { platform, env, home, worktreeRoot, trust, joined, committed, ...system };
  const inspected = await attempt(() => inspectConfig(question));
  const { config, problems } = inspected.value ?? (await inspectConfig(nothingSet(platform)));
  const layout = layoutOf(controlDir);
  const modes = modesFor(repository.config.sharedRepository);
  const coordinator = coordinatorOf(platform, config, controlDir, modes);
  return {
    place,
    platform,
    repository,
    layout,
    modes,
    dataDirectory: `${worktreeRoot}/.cotenant`,
    question,
    config,
    configProblems: problems,
    configFailure: inspected.failure,
    trust,
    trustFailure: trusted.failure,
    coordinator,
    hasStore: ((await attempt(() => platform.files.lstat(controlDir))).value ?? null) !== null,
    log: remembered(() => surveyLog(platform, layout)),
    leases: remembered(() => coordinator.list({ lapsed: true })),
    tickets: remembered(() => coordinator.store.queue.load(coordinator.store.now())),
  };
}

function coordinatorOf(
  platform: Platform,
  { values, policy }: Config,
  controlDirectory: string,
  modes: Modes,
): LocalCoordinator {
  const store = new Store(platform, {
    ...DEFAULT_STORE_OPTIONS,
    controlDirectory,
    modes,
    busyTimeoutMs: values["store.busy_timeout_secs"] * 1000,
    rotateBytes: values["store.rotate_bytes"],
    doing: "doctor",
  });
  return new LocalCoordinator(store, policy);
}

/** For when a source cannot be read at all: what holds without any. */
function nothingSet(platform: Platform): ConfigQuestion {
  return { platform, env: {}, home: null, worktreeRoot: null, systemDirectory: "/dev/null" };
}

/** The rest can be looked at also where the boot's id cannot be read: that is a finding of its own. */
function withoutBoot(platform: Platform): Platform {
  const { clock, processes } = platform;
  try {
    processes.self();
    clock.clockId();
    return platform;
  } catch {
    const nobody = { machineId: "", pidNamespace: UNREADABLE, timeNamespace: UNREADABLE, user: "", pid: 0 };
    return {
      ...platform,
      clock: {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs(),
        clockId: () => UNREADABLE,
      },
      processes: {
        host: () => processes.host(),
        machineId: () => "",
        self: () => ({ ...nobody, bootId: UNREADABLE, startTime: "" }),
        userName: () => processes.userName(),
        identify: () => null,
        ancestry: () => null,
        startedSince: () => null,
        startTimeNow: () => "",
        variables: () => null,
        liveness: () => "unknown",
        end: () => {},
      },
    };
  }
}

export const UNREADABLE = "unreadable";

async function attempt<T>(act: () => T | Promise<T>): Promise<{ value: T | null; failure: unknown }> {
  try {
    return { value: await act(), failure: null };
  } catch (failure) {
    return { value: null, failure };
  }
}

/** The same answer, or the same failure, for all who ask. */
function remembered<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Null for a file that is not there, and for one that cannot be read. */
export async function readOrNull(files: Platform["files"], path: string): Promise<Uint8Array | null> {
  try {
    return await files.readFile(path);
  } catch {
    return null;
  }
}
