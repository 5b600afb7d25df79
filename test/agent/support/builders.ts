import { z } from 'zod';
import { systemClock } from '#channel-kit/system-clock.ts';
import {
  accountId,
  agentId,
  channelId,
  conversationId,
  runId,
  type SessionKey,
  sessionId,
  transcriptId,
} from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { ParkRequest, Tool, ToolContext, ToolOutput, ToolRun } from '#contracts/tool.ts';
import { createConverter } from '../../../src/agent/convert.ts';
import type { AgentContext, AgentLoopConfig, LoopLimits } from '../../../src/agent/loop-config.ts';
import { fileSchema } from '../../../src/config/schema.ts';
import { runSettingsFrom } from '../../../src/runs/agents.ts';
import { type ScriptedModel, scriptedModel } from './scripted-model.ts';

export const aRun: ToolRun = {
  runId: runId('run-1'),
  sessionId: sessionId('session-1'),
  sessionKey: 'main:bot:net:dm:ada' as SessionKey,
  agentId: agentId('main'),
  route: { channel: channelId('net'), account: accountId('bot'), conversation: conversationId('ada') },
  authority: 'owner',
  workspace: '/nowhere',
  epoch: 1,
};

export function aMessage(
  role: AgentMessage['role'],
  id: string,
  ...parts: readonly MessagePart[]
): AgentMessage {
  return { id: transcriptId(id), role, parts, createdAt: 0 };
}

export function userSays(id: string, text: string): AgentMessage {
  return aMessage('user', id, { type: 'text', data: { text } });
}

export function aContext(tools: readonly Tool[] = [], messages: readonly AgentMessage[] = []): AgentContext {
  return { system: [{ text: 'You are a test.', isStable: true }], messages, tools };
}

/** The defaults of the configuration. */
export const someLimits: LoopLimits = runSettingsFrom(fileSchema.parse({})).limits;

export type ConfigChanges = Partial<AgentLoopConfig> & { readonly model?: ScriptedModel };

export function aConfig({ model = scriptedModel(), ...changes }: ConfigChanges = {}): AgentLoopConfig {
  let count = 0;
  return {
    run: aRun,
    clock: systemClock,
    newId: () => {
      count += 1;
      return transcriptId(`new-${count}`);
    },
    limits: someLimits,
    toolExecution: 'auto',
    steerTail: 'skip',
    maxTokens: 16_000,
    reasoning: 'off',
    stream: model.stream,
    convertToLlm: createConverter({ loadImage: async () => undefined }),
    getSteeringMessages: async () => [],
    getFollowUpMessages: async () => [],
    ...changes,
  };
}

export type ToolChanges = Partial<Omit<Tool, 'execute'>> & {
  readonly execute?: (input: unknown, ctx: ToolContext) => Promise<ToolOutput | ParkRequest>;
};

/** Returns a tool that answers with its own name, unless `changes` replaces that. */
export function aTool(name: string, changes: ToolChanges = {}): Tool {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: z.looseObject({}),
    parallelSafe: false,
    replay: 'safe',
    authority: 'guest',
    execute: async () => ({ text: `${name} ran` }),
    ...changes,
  };
}

/** Hands out each list once, in order, then nothing. */
export function inboxOf(
  ...batches: readonly (readonly AgentMessage[])[]
): () => Promise<readonly AgentMessage[]> {
  let next = 0;
  return async () => {
    const batch = batches[next] ?? [];
    next += 1;
    return batch;
  };
}

/** Returns an inbox of messages that arrive during the run; each is handed out once, at the next boundary. */
export function liveInbox() {
  let waiting: readonly AgentMessage[] = [];
  return {
    arrive: (message: AgentMessage) => {
      waiting = [...waiting, message];
    },
    poll: async () => {
      const taken = waiting;
      waiting = [];
      return taken;
    },
    left: () => waiting,
  };
}
