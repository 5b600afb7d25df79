/** All steps of the store and all chat commands. The SQLite writer thread runs them from these lists. */
import { commandSteps } from './commands/list.ts';
import { decideOnPage, expireQuestion } from './store/access/decide-approval.ts';
import { approveOnConsole, revokeOnConsole } from './store/access/operate-access.ts';
import { dismissNotice, raiseAlert, resolveAlert } from './store/alerts/alert.ts';
import { revokeGrant } from './store/approvals/grant.ts';
import type { StoreCommand, StoreProgram, StoreSetup } from './store/base/command.ts';
import { steerChild, stopChild } from './store/children/operate-child.ts';
import { spawnChild } from './store/children/spawn-child.ts';
import { acceptTask } from './store/delegation/accept-task.ts';
import { delegate } from './store/delegation/delegate.ts';
import { markTaskShown } from './store/delegation/mark-task-shown.ts';
import { replyToSubtask, retryTask, stopTaskOrSubtask } from './store/delegation/operate-task.ts';
import { settleTask } from './store/delegation/settle-task.ts';
import { removeBinding } from './store/delivery/bindings.ts';
import { claimDelivery, recordDelivery } from './store/delivery/claim-delivery.ts';
import { expireParts } from './store/delivery/expire-part.ts';
import { dropPart, retryPart } from './store/delivery/operator-actions.ts';
import { adoptPreview, recordPreview } from './store/delivery/preview.ts';
import { queueAlertMessage } from './store/delivery/queue-alert-message.ts';
import { endPartsAfterRestore } from './store/delivery/restore.ts';
import { storeToolParts } from './store/delivery/tool-send.ts';
import { acceptApiCall } from './store/intake/accept-api-call.ts';
import { acceptBatch } from './store/intake/accept-batch.ts';
import { acceptDelivery } from './store/intake/accept-delivery.ts';
import { enqueueItems } from './store/intake/enqueue-items.ts';
import { expireMedia, storeFetched } from './store/intake/media.ts';
import { cancelSession } from './store/intake/stop.ts';
import { cancelItem, cancelItems, editItem, promoteItem } from './store/items/change-item.ts';
import { showMarks } from './store/items/marks.ts';
import { storeWaitingNotices } from './store/items/waiting-notices.ts';
import { acknowledge } from './store/lanes/acknowledgement.ts';
import { claimLane } from './store/lanes/claim-lane.ts';
import { commitAnswer, endRun } from './store/lanes/commit-answer.ts';
import { commitSummary, savePromptSizes } from './store/lanes/commit-summary.ts';
import {
  commitToolTurn,
  endToolTurn,
  markToolStarted,
  markUnsendable,
  saveImage,
  storeNotice,
  storeToolResults,
} from './store/lanes/commit-turn.ts';
import { handOver, releaseFailedRun, releaseLane, renewLeases, resumePaused } from './store/lanes/leases.ts';
import { storeBlocks } from './store/lanes/live-parts.ts';
import { parkForApproval, parkForBudget, parkRun, settleParkedCall } from './store/lanes/park-run.ts';
import { recoverRun } from './store/lanes/recover-run.ts';
import { keepSkills } from './store/lanes/run-skills.ts';
import { sendToSession } from './store/lanes/send-to-session.ts';
import { setLaneMode } from './store/lanes/session.ts';
import { takeSteers } from './store/lanes/steer.ts';
import { closeBundles, makeDue, sweepChild } from './store/lanes/sweep.ts';
import { removeLink } from './store/links/change-links.ts';
import { deleteOldBudgets, endBudgetAlerts } from './store/money/budget.ts';
import { reserveCall } from './store/money/model-call.ts';
import { claimAccount, releaseAccount, rememberCommands } from './store/processes/accounts.ts';
import { addProcess, voidProcesses } from './store/processes/process-records.ts';
import { forgetLeftFiles } from './store/rows/left-files.ts';
import { createKeyedWrite, keepAnswer } from './store/rows/operation-calls.ts';
import { commitPluginData } from './store/rows/plugin-data.ts';
import { endSignIns, lockOut, openSignIn, touchSignIn } from './store/sign-ins/sign-ins.ts';
import { createToken, revokeToken, touchToken } from './store/sign-ins/tokens.ts';
import { resumeWithRoom } from './store/waits/budget-waits.ts';
import type { ChatTexts } from './texts/chat-texts.ts';

// The input type is `never` because the list forgets what each step takes; Store.write knows it.
const steps: readonly StoreCommand<never, unknown>[] = [
  acknowledge,
  acceptBatch,
  acceptApiCall,
  acceptDelivery,
  enqueueItems,
  approveOnConsole,
  addProcess,
  cancelItem,
  cancelItems,
  cancelSession,
  claimAccount,
  claimDelivery,
  claimLane,
  closeBundles,
  commitAnswer,
  commitPluginData,
  commitSummary,
  decideOnPage,
  expireQuestion,
  commitToolTurn,
  acceptTask,
  delegate,
  settleTask,
  markTaskShown,
  stopTaskOrSubtask,
  retryTask,
  replyToSubtask,
  removeBinding,
  deleteOldBudgets,
  dismissNotice,
  endPartsAfterRestore,
  dropPart,
  expireParts,
  editItem,
  voidProcesses,
  resolveAlert,
  reserveCall,
  resumeWithRoom,
  endBudgetAlerts,
  endRun,
  endSignIns,
  keepAnswer,
  keepSkills,
  endToolTurn,
  handOver,
  resumePaused,
  releaseFailedRun,
  lockOut,
  makeDue,
  markToolStarted,
  markUnsendable,
  openSignIn,
  parkForApproval,
  parkForBudget,
  parkRun,
  revokeGrant,
  storeToolParts,
  promoteItem,
  raiseAlert,
  recordPreview,
  adoptPreview,
  recoverRun,
  releaseAccount,
  releaseLane,
  rememberCommands,
  removeLink,
  renewLeases,
  retryPart,
  revokeOnConsole,
  saveImage,
  savePromptSizes,
  sendToSession,
  setLaneMode,
  storeBlocks,
  storeNotice,
  recordDelivery,
  settleParkedCall,
  spawnChild,
  steerChild,
  stopChild,
  expireMedia,
  forgetLeftFiles,
  storeFetched,
  storeToolResults,
  takeSteers,
  queueAlertMessage,
  showMarks,
  storeWaitingNotices,
  sweepChild,
  touchSignIn,
  createToken,
  revokeToken,
  touchToken,
];

/** Runs any of the steps once per idempotency key. */
export const keyedWrite = createKeyedWrite(steps);

/** The program that runs inside the store's transactions. */
export const storeProgram: StoreProgram = { steps: [...steps, keyedWrite], chatCommands: commandSteps };

/** Returns the set-up to pass to `openStore`. */
export function storeSetup(texts: ChatTexts): StoreSetup {
  return { ...storeProgram, texts, writer: new URL('./store-writer.ts', import.meta.url) };
}
