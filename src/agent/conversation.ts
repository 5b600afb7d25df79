import type { AgentMessage } from '#contracts/message.ts';
import type { Mark } from './mend-history.ts';

/** The messages of a run: what the next request is made from, and what the run itself has added. */
export class Conversation {
  #messages: readonly AgentMessage[];
  #added: readonly AgentMessage[] = [];

  constructor(messages: readonly AgentMessage[]) {
    this.#messages = messages;
  }

  get messages(): readonly AgentMessage[] {
    return this.#messages;
  }

  get added(): readonly AgentMessage[] {
    return this.#added;
  }

  /** A compaction may have read a message from the store before the loop appends it, hence by id. */
  append(message: AgentMessage): void {
    this.#added = withMessage(this.#added, message);
    this.#messages = withMessage(this.#messages, message);
  }

  /** Replaces a message by its later version, under the same id. */
  amend(message: AgentMessage): void {
    this.#added = this.#added.map((each) => (each.id === message.id ? message : each));
    this.#messages = this.#messages.map((each) => (each.id === message.id ? message : each));
  }

  /** Marks messages that a request was refused for. The messages that the run has added are told unmarked. */
  mark(marks: readonly Mark[]): void {
    const marked = new Map(marks.map(({ id, unsendable }) => [id, unsendable]));
    this.#messages = this.#messages.map((each) => {
      const unsendable = marked.get(each.id);
      return unsendable === undefined ? each : { ...each, unsendable };
    });
  }

  /** The messages left by a compaction. Messages added by the run stay recorded as they were. */
  replace(messages: readonly AgentMessage[]): void {
    this.#messages = messages;
  }
}

function withMessage(list: readonly AgentMessage[], message: AgentMessage): readonly AgentMessage[] {
  return list.some((each) => each.id === message.id) ? list : [...list, message];
}
