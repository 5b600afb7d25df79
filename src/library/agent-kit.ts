/**
 * The module that programs import as `parley/agent`: the loop that Parley's agents run in, without store, Redis or
 * channels. Everything but the model has a default.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { systemClock } from '#channel-kit/system-clock.ts';
import { agentId, runId, type SessionKey, sessionId, transcriptId } from '#contracts/ids.ts';
import type { AgentMessage } from '#contracts/message.ts';
import type { SystemBlock } from '#contracts/model.ts';
import type { Tool, ToolRun } from '#contracts/tool.ts';
import { createConverter, type LoadImage } from '../agent/convert.ts';
import { fitContext, pruneResults } from '../agent/fit-context.ts';
import { fitImageBytes } from '../agent/fit-image.ts';
import { type AgentEvents, agentLoopContinue as continueLoop, agentLoop as runLoop } from '../agent/loop.ts';
import type { AgentContext, AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import type { Model } from './model.ts';

export type { AgentEvent, CallQuestion, EndReason } from '#contracts/agent-event.ts';
export {
  type AgentMessage,
  type FinishReason,
  finishReasonOf,
  type MessagePart,
  type ToolCallData,
  textOf,
  toolCallsOf,
} from '#contracts/message.ts';
export type { LlmProvider, ModelEvent, ModelFailure, ModelInfo, ModelRequest } from '#contracts/model.ts';
export type { ParkRequest, Tool, ToolContext, ToolOutput, ToolRun } from '#contracts/tool.ts';
export { costLimit } from '../agent/cost-limit.ts';
export type { AgentEvents } from '../agent/loop.ts';
export type {
  AgentLoopConfig,
  LoopLimits,
  Permit,
  PermitRequest,
  ToolResult,
  ToolVerdict,
  TurnMiddleware,
  TurnState,
  TurnVerdict,
} from '../agent/loop-config.ts';
export type { AcceptedMessage, AgentMessageInput, AgentService } from '../service/agent-service.ts';
export { anthropic, demoModel, type Model, type ModelOptions, openai } from './model.ts';
/** The schema library of tools' inputs. */
export { z };

/** Input of a run: what the model is told, and what it may call. */
export type LoopContext = {
  readonly system?: string | readonly SystemBlock[];
  /** The conversation so far. */
  readonly messages?: readonly AgentMessage[];
  readonly tools?: readonly Tool[];
};

/** Everything but the model has a default. */
export type LoopOptions = Partial<Omit<AgentLoopConfig, 'run' | 'limits' | 'stream'>> & {
  readonly model: Model;
  readonly limits?: Partial<LoopLimits>;
  /** Facts about the run, for its tools. Default: fresh ids, the owner's authority, the current folder. */
  readonly run?: Partial<ToolRun>;
};

/**
 * Starts a run with a prompt. Read its events to the end: the loop continues when the next one is requested.
 * `agent_end` comes last and has the new messages. Abort the signal to end the run.
 */
export function agentLoop(
  prompt: string | readonly AgentMessage[],
  context: LoopContext,
  options: LoopOptions,
  signal: AbortSignal = new AbortController().signal,
): AgentEvents {
  const prompts = typeof prompt === 'string' ? [userMessage(prompt)] : prompt;
  return runLoop(prompts, contextOf(context), configOf(options), signal);
}

/**
 * Continues a conversation whose last message waits for the model. Throws ParleyError `invalid_input` if it is empty
 * or ends with an answer.
 */
export function agentLoopContinue(
  context: LoopContext,
  options: LoopOptions,
  signal: AbortSignal = new AbortController().signal,
): AgentEvents {
  return continueLoop(contextOf(context), configOf(options), signal);
}

/** Returns a person's message, for a prompt or a steer. */
export function userMessage(text: string): AgentMessage {
  return {
    id: transcriptId(randomUUID()),
    role: 'user',
    parts: [{ type: 'text', data: { text } }],
    createdAt: Date.now(),
  };
}

/** A tool as a program writes it. Defaults: it runs alone, isn't repeated after a crash, and anyone may cause it. */
export type WrittenTool<Input> = Pick<Tool<Input>, 'name' | 'description' | 'inputSchema' | 'execute'> &
  Partial<Tool<Input>>;

/** Checks a tool's definition against its input type. */
export function defineTool<Input>(tool: WrittenTool<Input>): Tool {
  // The schema has parsed the input before `execute` sees it, so widening the parameter is safe.
  return { parallelSafe: false, replay: 'never', authority: 'guest', ...tool } as Tool;
}

function contextOf({ system = [], messages = [], tools = [] }: LoopContext): AgentContext {
  const blocks = typeof system === 'string' ? [{ text: system, isStable: true }] : system;
  return { system: blocks, messages, tools };
}

/** As in Parley's own settings. */
const defaultLimits: LoopLimits = {
  ...{ runTimeoutMs: 600_000, modelIdleMs: 120_000 },
  ...{ turns: 50, repeatedCalls: 3 },
};

function configOf({ model, limits, run, ...options }: LoopOptions): AgentLoopConfig {
  const info = model.model();
  return {
    clock: systemClock,
    newId: () => transcriptId(randomUUID()),
    toolExecution: 'auto',
    steerTail: 'skip',
    maxTokens: info.answerTokens,
    reasoning: 'off',
    convertToLlm: createConverter({ loadImage }),
    transformContext: async (all, tokens) =>
      fitContext(pruneResults(all), { tokens, window: info.contextWindow }),
    getSteeringMessages: async () => [],
    getFollowUpMessages: async () => [],
    ...options,
    stream: model.stream,
    limits: { ...defaultLimits, ...limits },
    run: { ...newRun(), ...run },
  };
}

function newRun(): ToolRun {
  return {
    runId: runId(randomUUID()),
    sessionId: sessionId(randomUUID()),
    // Only names the run: outside of Parley there are no sessions.
    sessionKey: 'library' as SessionKey,
    agentId: agentId('main'),
    authority: 'owner',
    workspace: process.cwd(),
    epoch: 1,
  };
}

const loadImage: LoadImage = async (path) => {
  const bytes = await readFile(path).catch(() => undefined);
  return bytes && (fitImageBytes(bytes) ?? 'unfit');
};
