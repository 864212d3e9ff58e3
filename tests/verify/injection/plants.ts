import type { Plant } from "../plants";

/** Bugs that only a death or a failing disk at one certain system call brings to light. */
export const PLANTS: readonly Plant[] = [
  {
    name: "a failed sync is passed over",
    file: "src/store/durability.ts",
    from: "      failure = error;\n      await suspicion.raise();",
    to: "      void error;",
    caughtBy: ["error"],
  },
  {
    name: "an index that cannot be written fails what is in the log already",
    file: "src/store/index-follower.ts",
    from: "      await this.#follow(ground, ground.index, this.#lagBytes(callers));\n    } catch {\n      this.index.forget();\n    }",
    to: "      await this.#follow(ground, ground.index, this.#lagBytes(callers));\n    } catch (error) {\n      this.index.forget();\n      throw error;\n    }",
    caughtBy: ["error"],
  },
  {
    name: "half a line stays where the disk was full",
    file: "src/store/log-file.ts",
    from: "      await this.files.truncate(fd, size);",
    to: "      void size;",
    caughtBy: ["error"],
    inTest: true,
  },
  {
    name: "an unclear outcome is told as a failure",
    file: "src/store/store.ts",
    from: "job.reject(outcomeUnknown(explained, job.submission));",
    to: "job.reject(explained);",
    caughtBy: ["error"],
    inCase: "acquire",
  },
  {
    name: "the index says how far it reaches before it does",
    file: "src/store/index-follower.ts",
    from: "    const census = await this.index.apply(overlay, head.sequence);",
    to: "    await this.move({ census: index.census, head }, await this.#platform.files.fstat(fd));\n    const census = await this.index.apply(overlay, head.sequence);",
    caughtBy: ["crash"],
  },
  {
    name: "a new segment goes on where a dead one's left off",
    file: "src/store/segments.ts",
    from: "    await files.unlink(this.layout.nextLog);\n    const fd",
    to: "    const fd",
    caughtBy: ["crash"],
  },
  {
    name: "the mutex is freed by deleting its file",
    file: "src/store/mutex.ts",
    from: "      await this.platform.locks.unlock(this.#fd);\n    } catch {",
    to: "      await this.platform.files.unlink(this.#layout.mutex);\n      await this.#abandon();\n    } catch {",
    caughtBy: ["crash", "error"],
    inTest: true,
  },
];
