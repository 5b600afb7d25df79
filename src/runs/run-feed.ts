/**
 * Makes a run's events for the feed of its session. It is told each event of the loop once the recorder has handled it,
 * so followers learn no fact that isn't stored; what is still being written is a draft by its kind.
 */
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Clock } from '#contracts/clock.ts';
import { type FeedEvent, maxOutputLength } from '#contracts/feed.ts';
import { type AgentMessage, textOf, toolCallsOf } from '#contracts/message.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { endStateOf } from '../agent/tool-result.ts';
import { stripText } from '../logging/redaction.ts';
import type { Feed } from '../queue/feed.ts';
import { shouldJudgeAgain, visibleWhileStreaming } from '../replies/preview.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import { anySource } from '../replies/silence.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';

export type RunFeedDeps = {
  readonly clock: Clock;
  readonly feed: Pick<Feed, 'publish' | 'isFollowed' | 'onTextRequest'>;
  /** Removes secrets, which the output of a tool may contain. */
  redact(text: string): string;
};

type FedRun = Pick<ClaimedRun, 'runId' | 'laneKey' | 'sessionId' | 'beginsSession'>;
type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>;

/** Time between two reports of the outputs of running tools, ms. */
const outputIntervalMs = 200;

/** Publishes the events of one attempt at a run. */
export class RunFeed {
  readonly #deps: RunFeedDeps;
  readonly #run: FedRun;
  readonly #text = new TextPieces();
  /** Costs of messages that aren't on record yet. */
  #costs: readonly { readonly messageId: string; readonly cost: number }[] = [];
  /** The newest output of each running tool, if it isn't published. */
  readonly #outputs = new Map<string, string>();
  readonly #closed = new AbortController();

  constructor(deps: RunFeedDeps, run: FedRun) {
    this.#deps = deps;
    this.#run = run;
    deps.feed.onTextRequest(run.laneKey, () => this.#tellText(), this.#closed.signal);
  }

  /** The claim is stored. */
  begin(): void {
    const { runId, sessionId, beginsSession } = this.#run;
    this.publish({ kind: 'run', runId, state: 'started' });
    if (beginsSession) this.publish({ kind: 'session', sessionId });
  }

  /** Publishes what an event of the loop means to followers. `isStored`: what it reports is on record. */
  tell(event: AgentEvent, isStored: boolean): void {
    if (event.type === 'message_update') this.#write(event);
    if (event.type === 'tool_execution_update') this.#keepOutput(event);
    if (event.type === 'message_end' && event.cost !== undefined)
      this.#costs = [...this.#costs, { messageId: event.message.id, cost: event.cost }];
    if (!isStored) return;
    const { runId, sessionId } = this.#run;
    for (const cost of this.#costs) this.publish({ kind: 'cost', sessionId, ...cost });
    this.#costs = [];
    if (event.type === 'tool_execution_end') this.#outputs.delete(event.callId);
    if (event.type === 'agent_end') this.end(event.reason === 'natural' ? undefined : event.reason);
    for (const fact of factsOf(event, runId)) {
      if (fact.kind === 'answer') this.#text.end();
      this.publish(fact);
    }
  }

  /** The run's end is stored. `reason`: why it isn't a natural one. */
  end(reason?: string): void {
    const { runId } = this.#run;
    this.publish({ kind: 'run', runId, state: 'ended', ...(reason !== undefined && { reason }) });
  }

  /** Tells what share of the history a summary's model has read. */
  readonly progress = (share: number): void => {
    this.publish({ kind: 'compaction', runId: this.#run.runId, state: 'started', progress: share });
  };

  /** This attempt is over, which says nothing about the run. */
  close(): void {
    this.#outputs.clear();
    this.#closed.abort();
    this.publish({ kind: 'changed' });
  }

  publish(event: FeedEvent): void {
    this.#deps.feed.publish(this.#run.laneKey, event);
  }

  #write(update: EventOf<'message_update'>): void {
    const { runId, laneKey } = this.#run;
    const isFollowed = this.#deps.feed.isFollowed(laneKey);
    for (const piece of this.#text.take(update, isFollowed)) this.publish({ kind: 'text', runId, ...piece });
  }

  /** Tells all of the message again, for followers who came while it was being written. */
  #tellText(): void {
    const { runId } = this.#run;
    for (const piece of this.#text.all()) this.publish({ kind: 'text', runId, ...piece });
  }

  #keepOutput({ callId, text }: EventOf<'tool_execution_update'>): void {
    const isDue = this.#outputs.size > 0;
    this.#outputs.set(callId, text);
    if (!isDue) void this.#publishOutputs();
  }

  async #publishOutputs(): Promise<void> {
    await this.#deps.clock.wait(outputIntervalMs, this.#closed.signal);
    const { runId } = this.#run;
    for (const [callId, text] of this.#outputs)
      this.publish({ kind: 'output', runId, callId, text: endOf(text, this.#deps.redact) });
    this.#outputs.clear();
  }
}

/** Returns the end of an output. A secret that the first cut divides lies before what is returned. */
function endOf(text: string, redact: RunFeedDeps['redact']): string {
  const clean = stripText(redact(text.slice(-4 * maxOutputLength)));
  return clean.slice(-maxOutputLength).toWellFormed();
}

function factsOf(event: AgentEvent, runId: string): readonly FeedEvent[] {
  switch (event.type) {
    case 'turn_end': {
      const { parts } = event.message;
      if (toolCallsOf(parts).length > 0) return [];
      return [{ kind: 'answer', runId, text: readableText(textOf(parts), anySource) }];
    }
    case 'tool_execution_prepared':
      return [{ kind: 'tool', runId, callId: event.call.id, name: event.call.name, state: 'started' }];
    case 'tool_execution_end':
      return [{ kind: 'tool', runId, callId: event.callId, name: event.name, state: endStateOf(event) }];
    case 'compaction_start': {
      const { oldTokens, threshold } = event;
      return [{ kind: 'compaction', runId, state: 'started', oldTokens, threshold }];
    }
    case 'compaction_end':
      return [{ kind: 'compaction', runId, state: event.isDone ? 'done' : 'failed' }];
    default:
      return [];
  }
}

type Piece = Pick<Extract<FeedEvent, { kind: 'text' }>, 'of' | 'at' | 'text'>;

/** Divides the newest message of a run into pieces, each of which is told once. */
class TextPieces {
  #id: string | undefined;
  #written = { assistant: '', reasoning: '' };
  #shown = '';
  #judgedLength = 0;
  #message: AgentMessage | undefined;

  /** Returns the pieces that an update adds; none unless somebody reads them. */
  take({ event, message }: EventOf<'message_update'>, isFollowed: boolean): readonly Piece[] {
    if (message.id !== this.#id) this.#begin(message.id);
    this.#message = message;
    const pieces = this.#piecesOf(event);
    if (!isFollowed) return [];
    return event.type === 'content_delta' ? [...pieces, ...this.#grow(message)] : pieces;
  }

  /** The message is complete, and stored: followers have it otherwise. */
  end(): void {
    this.#begin(undefined);
    this.#message = undefined;
  }

  /** Returns the present message as written so far; none before there is one. */
  all(): readonly Piece[] {
    if (this.#message === undefined) return [];
    const visible = visibleWhileStreaming(textOf(this.#message.parts), anySource);
    if (visible.length > this.#shown.length) this.#shown = visible;
    return [
      { of: 'reasoning', at: 0, text: this.#written.reasoning },
      { of: 'assistant', at: 0, text: this.#written.assistant },
      { of: 'chat', at: 0, text: this.#shown },
    ];
  }

  #piecesOf(event: ModelEvent): readonly Piece[] {
    if (event.type === 'content_delta') return [this.#piece('assistant', event.text)];
    if (event.type === 'thinking_delta') return [this.#piece('reasoning', event.thinking)];
    const isAnew = event.type === 'content_recall' || (event.type === 'warning' && event.kind === 'anew');
    if (!isAnew) return [];
    this.#begin(this.#id);
    return [
      { of: 'assistant', at: 0, text: '' },
      { of: 'chat', at: 0, text: '' },
    ];
  }

  #piece(of: 'assistant' | 'reasoning', text: string): Piece {
    const at = this.#written[of].length;
    this.#written[of] += text;
    return { of, at, text };
  }

  #begin(id: string | undefined): void {
    this.#id = id;
    this.#written = { assistant: '', reasoning: '' };
    this.#shown = '';
    this.#judgedLength = 0;
  }

  #grow({ parts }: AgentMessage): readonly Piece[] {
    const length = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.data.text.length : 0), 0);
    if (!shouldJudgeAgain(this.#judgedLength, length)) return [];
    this.#judgedLength = length;
    const visible = visibleWhileStreaming(textOf(parts), anySource);
    const at = this.#shown.length;
    const text = visible.slice(at);
    // Keeps the longest text: words that may turn into a tag briefly shrink the visible text.
    if (text !== '') this.#shown = visible;
    return text === '' ? [] : [{ of: 'chat', at, text }];
  }
}
