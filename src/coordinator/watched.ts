/** What somebody who watches the directories of issues knows of them. */
export interface Watched {
  /** Names one life of the watch: whatever was said in another one means nothing in this. */
  readonly epoch: string;
  /** All changes up to here are counted in: also those that were made just before it was asked. */
  readonly tick: number;
  /** The cache that the rest is about, as `tell` has named it; null: nothing is known of any. */
  readonly cache: string | null;
  /** For each root, in the order in which they were asked for. */
  readonly places: readonly WatchedPlace[];
}

export interface WatchedPlace {
  /** Of the directory that is watched, to notice when another one has taken its place. */
  readonly inode: number;
  /** Names in it that may not be as the cache says. */
  readonly changed: readonly string[];
}

export interface WatchedQuestion {
  /** Where the cache is. */
  readonly path: string;
  /** The directories that hold one for each issue. */
  readonly folders: readonly string[];
}

/** Lets those who keep a cache of many files look only at what has changed. Whoever is not sure says nothing. */
export interface FolderWatcher {
  /** Below this many files, looking is faster than asking. */
  readonly worthFrom: number;
  /** Null: look at everything. */
  ask(question: WatchedQuestion): Promise<Watched | null>;
  /** The cache of that name was true at some time after that answer. */
  tell(question: WatchedQuestion, watched: Watched, cache: string): Promise<void>;
}
