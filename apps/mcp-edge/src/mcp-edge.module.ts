import { Module } from '@nestjs/common';
import { Approvals } from './approval.service.js';
import { Artifacts } from './artifacts.js';
import { Calls } from './call.service.js';
import { Contents } from './content.service.js';
import { Decisions } from './decision.service.js';
import { EdgeTokens } from './edge-tokens.service.js';
import { HearingHandlers } from './hearing.handlers.js';
import { EdgeKernel } from './http/edge-kernel.js';
import { Inflight } from './inflight.js';
import { LegacyClients } from './legacy.service.js';
import { Methods } from './methods.service.js';
import { ModernClients } from './modern.service.js';
import { Seal } from './seal.js';
import { Skills } from './skills.service.js';
import { SnapshotReader } from './snapshot.reader.js';
import { Streams } from './streams.service.js';
import { Tombstones } from './tombstones.js';
import { Worlds } from './worlds.service.js';

@Module({
  controllers: [HearingHandlers],
  providers: [
    ...[EdgeKernel, LegacyClients, ModernClients, Methods, Streams],
    ...[Calls, Contents, Skills, Approvals, Decisions, Inflight, Artifacts],
    ...[Worlds, SnapshotReader, EdgeTokens, Tombstones, Seal],
  ],
})
export class McpEdgeModule {}
