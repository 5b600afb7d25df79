// How every run must look from outside, whatever happens in it. Independent of the loop's code.

import type { AgentEvent } from '#contracts/agent-event.ts';
import { type AgentMessage, finishReasonOf, toolCallsOf } from '#contracts/message.ts';

/** Returns the violations of the event grammar; an empty list means a well-formed run. */
export function grammarErrors(events: readonly AgentEvent[]): readonly string[] {
  const checker = new GrammarChecker();
  for (const [index, event] of events.entries()) checker.see(event, index === events.length - 1);
  return checker.errors;
}

type Call = {
  isAnnounced: boolean;
  isStarted: boolean;
  isEnded: boolean;
  isParked: boolean;
  hasResult: boolean;
};

class GrammarChecker {
  readonly errors: string[] = [];
  #isOpen = false;
  #turn = 0;
  #isTurnOpen = false;
  #isResumed = false;
  #openMessage: AgentMessage | undefined;
  #joined: AgentMessage | undefined;
  #answer: AgentMessage | undefined;
  #calls = new Map<string, Call>();
  #results: string[] = [];
  #isCompacting = false;
  #added: string[] = [];

  see(event: AgentEvent, isLast: boolean) {
    if (this.#isOpen === (event.type === 'agent_start')) this.#fail(`${event.type} outside of the run`);
    if (isLast !== (event.type === 'agent_end')) this.#fail(`${event.type} in the wrong place of the end`);
    if (this.#isCompacting && event.type !== 'compaction_end') this.#fail(`${event.type} in a compaction`);
    // A request that overflows is repeated within its answer.
    const isWithin = event.type.startsWith('message_') || event.type.startsWith('compaction_');
    if (this.#openMessage && !isWithin) this.#fail(`${event.type} inside a message`);
    switch (event.type) {
      case 'agent_start':
        this.#isOpen = true;
        return;
      case 'turn_start':
        return this.#startTurn(event.turn, event.resumes);
      case 'message_start':
        return this.#startMessage(event.message);
      case 'message_update':
        return this.#updateMessage(event.message);
      case 'message_end':
        return this.#endMessage(event.message);
      case 'tool_execution_start':
      case 'tool_execution_prepared':
      case 'tool_execution_update':
      case 'tool_execution_end':
      case 'tool_execution_parked':
        return this.#seeTool(event.type, 'call' in event ? event.call.id : event.callId);
      case 'tool_execution_asked':
        return this.#seeTool(event.type, event.question.callId);
      case 'turn_end':
        return this.#endTurn(event.message, event.toolResults);
      case 'compaction_start':
      case 'compaction_end':
        this.#isCompacting = event.type === 'compaction_start';
        return;
      case 'agent_end':
        return this.#endRun(event.messages, event.reason);
      default:
        event satisfies never;
    }
  }

  #fail(problem: string) {
    this.errors.push(problem);
  }

  #startTurn(turn: number, resumes: AgentMessage | undefined) {
    if (this.#isTurnOpen) this.#fail('a turn inside a turn');
    // A resumed run continues the numbering of the previous attempt.
    if (this.#turn !== 0 && turn !== this.#turn + 1) this.#fail(`turn ${turn} after turn ${this.#turn}`);
    if (this.#turn !== 0 && resumes) this.#fail('a batch resumed within an attempt');
    this.#turn = turn;
    this.#isTurnOpen = true;
    this.#answer = undefined;
    this.#calls = new Map();
    this.#results = [];
    if (resumes) this.#answered(resumes);
    this.#isResumed = resumes !== undefined;
  }

  #startMessage(message: AgentMessage) {
    // Messages that join an answer before its first word are reported inside it.
    if (this.#openMessage && message.role !== 'user') this.#fail('a message inside a message');
    if (this.#openMessage?.role === 'assistant' && message.role === 'user') this.#joined = this.#openMessage;
    if (message.role === 'assistant' && finishReasonOf(message.parts)) this.#fail('finished at its start');
    if (message.role === 'assistant' && this.#answer) this.#fail('two answers in one turn');
    if (message.role === 'assistant' && !this.#isTurnOpen) this.#fail('an answer outside of a turn');
    const isParked = [...this.#calls.values()].some((call) => call.isParked);
    if (message.role === 'user' && this.#isTurnOpen && this.#answer && !isParked)
      this.#fail('user text after the answer');
    this.#openMessage = message;
  }

  #updateMessage(message: AgentMessage) {
    if (this.#openMessage?.id !== message.id) this.#fail('an update of no open message');
    if (message.role !== 'assistant') this.#fail(`an update of a ${message.role} message`);
  }

  #endMessage(message: AgentMessage) {
    if (this.#openMessage?.id !== message.id) this.#fail('the end of no open message');
    this.#openMessage = message.role === 'user' ? this.#joined : undefined;
    this.#joined = undefined;
    this.#added.push(message.id);
    if (message.role === 'assistant') this.#answered(message);
    if (message.role === 'tool') this.#resulted(message);
  }

  #answered(message: AgentMessage) {
    if (finishReasonOf(message.parts) === undefined) this.#fail('an answer without finish part');
    this.#answer = message;
    for (const { id } of toolCallsOf(message.parts)) {
      if (this.#calls.has(id)) this.#fail(`two calls ${id}`);
      this.#calls.set(id, {
        isAnnounced: false,
        isStarted: false,
        isEnded: false,
        isParked: false,
        hasResult: false,
      });
    }
  }

  #resulted(message: AgentMessage) {
    const ids = message.parts.flatMap((part) =>
      part.type === 'tool_result' ? [part.data.tool_call_id] : [],
    );
    if (ids.length !== 1) this.#fail(`${ids.length} results in one message`);
    for (const id of ids) {
      const call = this.#calls.get(id);
      if (!call?.isEnded) this.#fail(`the result of ${id} before its end`);
      if (call?.hasResult) this.#fail(`two results of ${id}`);
      if (call) call.hasResult = true;
      this.#results.push(id);
    }
  }

  #seeTool(type: AgentEvent['type'], id: string) {
    const call = this.#calls.get(id);
    if (call === undefined) return this.#fail(`${type} of unknown call ${id}`);
    if (call.isEnded) this.#fail(`${type} of ${id} after its end`);
    if (type === 'tool_execution_start' && call.isAnnounced) this.#fail(`${id} announced twice`);
    if (type === 'tool_execution_start') call.isAnnounced = true;
    if (!call.isAnnounced) this.#fail(`${type} of ${id}, which was not announced`);
    if (type === 'tool_execution_prepared' && call.isStarted) this.#fail(`${id} started twice`);
    if (type === 'tool_execution_update' && !call.isStarted) this.#fail(`update of ${id} before its start`);
    if (type === 'tool_execution_prepared') call.isStarted = true;
    if (type === 'tool_execution_end') call.isEnded = true;
    if (type === 'tool_execution_asked' && call.isStarted) this.#fail(`${id} asked about after its start`);
    if (type === 'tool_execution_asked') call.isParked = true;
    if (type !== 'tool_execution_parked') return;
    if (!call.isStarted) this.#fail(`${id} parked before its start`);
    call.isParked = true;
  }

  #endTurn(message: AgentMessage, toolResults: readonly AgentMessage[]) {
    if (!this.#isTurnOpen) this.#fail('the end of no turn');
    if (message.id !== this.#answer?.id) this.#fail('a turn ends with another message than its answer');
    const source = [...this.#calls.keys()].join();
    // Results that an earlier attempt has recorded aren't emitted again.
    if (!this.#isResumed && this.#results.join() !== source)
      this.#fail(`results ${this.#results.join()} for calls ${source}`);
    const carried = toolResults.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.tool_call_id] : [])),
    );
    if (carried.join() !== source) this.#fail(`turn_end carries ${carried.join()} for calls ${source}`);
    this.#isTurnOpen = false;
  }

  #endRun(messages: readonly AgentMessage[], reason: string) {
    if (reason === 'parked') this.#endParked();
    else if (this.#isTurnOpen && this.#answer) this.#fail('a turn with an answer was left open');
    const told = messages.map(({ id }) => id).join();
    if (told !== this.#added.join()) this.#fail(`agent_end carries ${told}, told were ${this.#added.join()}`);
  }

  /** Every started call is parked or has its result; the others are left to the resumed run. */
  #endParked() {
    const calls = [...this.#calls.values()];
    if (!calls.some((call) => call.isParked)) this.#fail('parked without a parked call');
    const isOpen = (call: Call) => call.isStarted && !call.isParked && !call.hasResult;
    if (calls.some(isOpen)) this.#fail('parked before a started call had its result');
    if (calls.some((call) => call.isParked && call.isEnded)) this.#fail('a parked call has an end');
  }
}
