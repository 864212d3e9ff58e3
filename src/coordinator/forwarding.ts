import type { LeaseRef } from "../kernel/commands";
import type { Extent } from "../kernel/conflicts";
import type {
  AcquireRequest,
  Coordinator,
  EvictRequest,
  FactFilter,
  GcRequest,
  HeldRequest,
  HistoryFilter,
  HolderRequest,
  ListFilter,
  LoggedEvent,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  TransferRequest,
  WriteRequest,
} from "./contract";

/** An engine in front of another: what it does not do itself goes through as it is. */
export class ForwardingCoordinator implements Coordinator {
  constructor(protected readonly behind: Coordinator) {}

  acquire(request: AcquireRequest) {
    return this.behind.acquire(request);
  }
  held(request: HeldRequest) {
    return this.behind.held(request);
  }
  renew(request: RenewRequest) {
    return this.behind.renew(request);
  }
  heartbeat(request: HolderRequest) {
    return this.behind.heartbeat(request);
  }
  release(request: ReleaseRequest) {
    return this.behind.release(request);
  }
  transfer(request: TransferRequest) {
    return this.behind.transfer(request);
  }
  evict(request: EvictRequest) {
    return this.behind.evict(request);
  }
  stop(request: StopRequest) {
    return this.behind.stop(request);
  }
  upkeep(request: StopRequest) {
    return this.behind.upkeep(request);
  }
  gc(request: GcRequest) {
    return this.behind.gc(request);
  }
  write<T>(request: WriteRequest<T>) {
    return this.behind.write(request);
  }
  facts(filter: FactFilter) {
    return this.behind.facts(filter);
  }
  factsSince(kind: string, position: string | null) {
    return this.behind.factsSince(kind, position);
  }
  list(filter?: ListFilter) {
    return this.behind.list(filter);
  }
  find(refs: readonly LeaseRef[]) {
    return this.behind.find(refs);
  }
  overlapping(extents: readonly Extent[]) {
    return this.behind.overlapping(extents);
  }
  endings(refs: readonly LeaseRef[]) {
    return this.behind.endings(refs);
  }
  waiters() {
    return this.behind.waiters();
  }
  highestToken() {
    return this.behind.highestToken();
  }
  history(filter?: HistoryFilter) {
    return this.behind.history(filter);
  }
  watch(listener: (event: LoggedEvent) => void, after?: number) {
    return this.behind.watch(listener, after);
  }
}
