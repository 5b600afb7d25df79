import type { z } from 'zod';
import {
  type AgentDeps,
  cancelRun,
  listAgents,
  type RosterDeps,
  sendMessage,
  showBusy,
  steerSession,
  summarizeSession,
  waitForRun,
} from './agents.ts';
import { type ApprovalsDeps, answerApproval, endGrant, listApprovals } from './approvals.ts';
import { endBinding, listBindings } from './bindings.ts';
import { type HooksDeps, listHooks } from './hooks.ts';
import { type LanesDeps, listLanes, setMode } from './lanes.ts';
import { type LinksDeps, listLinks, removeAccount } from './links.ts';
import { answerQuestion, dismissNotice, listNotices, type NoticesDeps } from './notices.ts';
import type { Caller, OnceDeps, Operation } from './operation.ts';
import { giveUpPart, listOutbox, resendPart } from './outbox.ts';
import { approvePerson, listAccess, type PairDeps, revokePerson } from './pair.ts';
import { cancelQueued, editQueued, listQueue, promoteQueued, type QueueDeps, showQueued } from './queue.ts';
import { listMessages, listSessions, showSession } from './sessions.ts';
import {
  endSignIns,
  issueSignInLinks,
  listSignIns,
  type SignInLinksDeps,
  type SignInsDeps,
} from './sign-ins.ts';
import { listCommands, reload, type StatusDeps, showStatus } from './status.ts';
import { listSubagents, showSubagent, showSubagentLog, steerSubagent, stopSubagent } from './subagents.ts';
import { sendTaskMessage, type TaskMessagesDeps } from './task-messages.ts';
import { listTasks, retryFailedTask, showTask, steerSubtask, stopTask } from './tasks.ts';
import { addToken, endToken, listTokens, type TokensDeps } from './tokens.ts';
import { type WhyDeps, why } from './why.ts';

/** Dependencies of the operations that also run without a gateway, on a store that the command line has opened. */
export type LocalDeps = QueueDeps & WhyDeps & PairDeps & ApprovalsDeps & LinksDeps & SignInsDeps & TokensDeps;

/** Dependencies of all operations, which only a gateway has. */
export type GatewayDeps = LocalDeps &
  HooksDeps &
  StatusDeps &
  AgentDeps &
  RosterDeps &
  TaskMessagesDeps &
  LanesDeps &
  NoticesDeps &
  SignInLinksDeps &
  OnceDeps;

/** An operation of the list, which forgets what each takes: hence the type of the input. */
export type ListedOperation = Omit<Operation<GatewayDeps, z.ZodType, z.ZodType>, 'run'> & {
  readonly run: (deps: GatewayDeps, input: never, caller: Caller) => Promise<unknown>;
};

/** All operations, in the order of the API's description. */
export const operations: readonly ListedOperation[] = [
  ...[showStatus, reload, listCommands],
  ...[sendMessage, steerSession, summarizeSession, waitForRun, cancelRun, showBusy, listAgents],
  ...[listSessions, showSession, listMessages],
  ...[listQueue, showQueued, cancelQueued, promoteQueued, editQueued],
  ...[listLanes, setMode, listHooks],
  why,
  ...[listOutbox, resendPart, giveUpPart],
  ...[listNotices, dismissNotice, answerQuestion],
  ...[listApprovals, answerApproval, endGrant],
  ...[listAccess, approvePerson, revokePerson],
  ...[listLinks, removeAccount],
  ...[listBindings, endBinding],
  ...[listSubagents, showSubagent, showSubagentLog, steerSubagent, stopSubagent],
  ...[listTasks, showTask, sendTaskMessage, stopTask, retryFailedTask, steerSubtask],
  ...[issueSignInLinks, listSignIns, endSignIns],
  ...[listTokens, addToken, endToken],
];
