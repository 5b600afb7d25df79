import { channelContract } from '../channel-contract.ts';
import { aSignalHarness } from './signal-harness.ts';

channelContract('signal by webhook', () => aSignalHarness('webhook'));
channelContract('signal by WebSocket alone', () => aSignalHarness('socket'));
