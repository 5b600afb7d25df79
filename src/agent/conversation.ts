import type { AgentMessage } from '#contracts/message.ts';
import type { Mark } from './repair-history.ts';

/** The messages of a run: those the next request is built from, and those the run itself has added. */
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

  /** Appends by id, because a compaction may have read the message from the store before the loop appends it. */
  append(message: AgentMessage): void {
    this.#added = withMessage(this.#added, message);
    this.#messages = withMessage(this.#messages, message);
  }

  /** Replaces a message with its later version under the same id. */
  amend(message: AgentMessage): void {
    this.#added = this.#added.map((each) => (each.id === message.id ? message : each));
    this.#messages = this.#messages.map((each) => (each.id === message.id ? message : each));
  }

  /** Marks the messages that a request was rejected for. The run still reports its added messages unmarked. */
  mark(marks: readonly Mark[]): void {
    const marked = new Map(marks.map(({ id, unsendable }) => [id, unsendable]));
    this.#messages = this.#messages.map((each) => {
      const unsendable = marked.get(each.id);
      return unsendable === undefined ? each : { ...each, unsendable };
    });
  }

  /** Replaces the context after a compaction. The record of messages added by the run stays unchanged. */
  replace(messages: readonly AgentMessage[]): void {
    this.#messages = messages;
  }
}

function withMessage(list: readonly AgentMessage[], message: AgentMessage): readonly AgentMessage[] {
  return list.some((each) => each.id === message.id) ? list : [...list, message];
}
