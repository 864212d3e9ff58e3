/** One call of a tool, as a model asks for it. */
export interface ToolCall {
  readonly tool: string;
  readonly input: unknown;
  /** OpenAI's Responses only: the tool takes plain text instead of JSON. */
  readonly isFreeform?: boolean;
  /** OpenAI's Responses only: the group that the tool belongs to. */
  readonly namespace?: string;
}

/** What a model answers: tools to run, or the words that end its turn. */
export type Turn = { readonly calls: readonly ToolCall[] } | { readonly words: string };

/**
 * A scripted model is an ordinary function: it asks for tools, looks at what came back and at the repository, and
 * returns the last words of the turn.
 */
export type Script = (talk: Talk) => Promise<string>;

export interface Talk {
  /** Has the harness run one tool; answers what the model is told about it, by the tool and by hooks. */
  use(call: ToolCall): Promise<string>;
  /** Several tools in one answer: the harness may run them at the same time. */
  useAll(calls: readonly ToolCall[]): Promise<readonly string[]>;
}

/** The program ended before it sent the result of a tool. */
export class Hangup extends Error {
  constructor(why: string) {
    super(`the program ended before the model was told anything (${why})`);
  }
}

/** Everything that a request tells the model. */
interface Told {
  readonly results: readonly string[];
  /** In the user's name: the prompt, and what hooks add to it. */
  readonly said: readonly string[];
}

interface Waiting {
  readonly resolve: (told: Told) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One script and the harness that plays it. The model's side of the protocols is stateless: each request carries the
 * results of all tools so far, and their number says which turn it asks for. A request that is sent again gets the same
 * answer again.
 */
export class Conversation implements Talk {
  /** By the number of results that the request for it carries. */
  readonly #turns = new Map<number, Turn>();
  readonly #listeners = new Set<() => void>();
  /** What the script ended with; rejected when the script failed. */
  readonly ended: Promise<string>;
  #results = 0;
  #said = 0;
  #waiting: Waiting | null = null;
  #hangup: Hangup | null = null;
  #isAsked = false;
  /** The turn that ends the conversation, whatever the program still has to say. */
  #last: Turn | null = null;

  constructor(script: Script) {
    this.ended = script(this).then(
      (words) => {
        this.#offer({ words });
        return words;
      },
      (error: unknown) => {
        this.#offer({ words: "the script failed" });
        throw error;
      },
    );
    // Whoever started it waits for it later.
    this.ended.catch(() => {});
  }

  /** Whether the program has asked the model for anything at all. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  async use(call: ToolCall): Promise<string> {
    return (await this.useAll([call]))[0] ?? "";
  }

  async useAll(calls: readonly ToolCall[]): Promise<readonly string[]> {
    if (this.#hangup !== null) throw this.#hangup;
    this.#offer({ calls });
    const { results, said } = await new Promise<Told>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    // Some programs add results of tools that nobody asked for, such as what a background command printed.
    this.#results = results.length;
    const beside = said.slice(this.#said);
    this.#said = said.length;
    return results.slice(-calls.length).map((result) => [result, ...beside].join("\n"));
  }

  /** The turn that a request with these results asks for, as soon as the script has decided on it. */
  async turnAfter(results: readonly string[], said: readonly string[] = []): Promise<Turn> {
    this.#isAsked = true;
    if (results.length === 0) this.#said = said.length;
    const waiting = this.#waiting;
    if (waiting !== null && results.length > this.#results) {
      this.#waiting = null;
      waiting.resolve({ results, said });
    }
    for (;;) {
      const turn = this.#turns.get(results.length) ?? this.#last;
      if (turn !== null) return turn;
      if (this.#hangup !== null) return { words: "" };
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  /** The program is gone: nobody will answer. */
  hangUp(why: string): void {
    this.#hangup = new Hangup(why);
    this.#waiting?.reject(this.#hangup);
    this.#waiting = null;
    this.#wake();
  }

  #offer(turn: Turn): void {
    this.#turns.set(this.#results, turn);
    if ("words" in turn) this.#last = turn;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#listeners) wake();
    this.#listeners.clear();
  }
}
