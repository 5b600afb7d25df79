import { randomBytes } from 'node:crypto';
import { refuse } from './errors.ts';
import type { DiscordUser, StandingMessage, Wire } from './types.ts';
import type { ChannelState } from './world.ts';

const firstAnswerMs = 3000;
const tokenMs = 15 * 60 * 1000;

/** Something that a person requested from the bot, and its outcome. */
export type Interaction = {
  readonly id: string;
  readonly token: string;
  /** 2: a command; 3: a button or menu. */
  readonly type: 2 | 3;
  readonly from: DiscordUser;
  readonly channel: ChannelState;
  readonly at: number;
  readonly data: Wire;
  /** The message whose button was pressed. */
  readonly message: StandingMessage | undefined;
  /** The type of the first answer; undefined: none came, or not yet. */
  answer: number | undefined;
  answeredAt: number | undefined;
  /** The id of the message that is the first answer. */
  originalId: string | undefined;
  /** The ids of all messages that answer it, including ephemeral ones. */
  readonly messageIds: string[];
};

/** Interactions with the platform's time limits: 3 seconds for the first answer, 15 minutes for the token. */
export class Interactions {
  readonly #now: () => number;
  readonly all: Interaction[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  add(
    interaction: Omit<Interaction, 'token' | 'at' | 'answer' | 'answeredAt' | 'originalId' | 'messageIds'>,
  ): Interaction {
    const one: Interaction = {
      ...interaction,
      token: randomBytes(48).toString('base64url'),
      at: this.#now(),
      answer: undefined,
      answeredAt: undefined,
      originalId: undefined,
      messageIds: [],
    };
    this.all.push(one);
    return one;
  }

  /** Says whether the person sees that the bot didn't answer in time. */
  failed(interaction: Interaction): boolean {
    return interaction.answer === undefined && this.#now() - interaction.at > firstAnswerMs;
  }

  /** Returns the interaction that waits for its first answer, or throws the platform's refusal. */
  unanswered(id: string, token: string): Interaction {
    const one = this.all.find((other) => other.id === id && other.token === token);
    if (one === undefined || this.failed(one)) throw refuse('unknownInteraction');
    if (one.answer !== undefined) throw refuse('alreadyAcknowledged');
    return one;
  }

  /** Returns the interaction with a webhook's token, or throws the platform's refusal. */
  byToken(token: string): Interaction {
    const one = this.all.find((other) => other.token === token);
    if (one === undefined || one.answer === undefined) throw refuse('unknownWebhook');
    if (this.#now() - one.at >= tokenMs) throw refuse('invalidWebhookToken');
    return one;
  }
}
