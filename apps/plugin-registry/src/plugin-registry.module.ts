import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { ActivationService } from './activation.service.js';
import { Availability } from './availability.js';
import { PluginBlobs } from './blobs.js';
import { Fences } from './fences.js';
import { HereService } from './here.service.js';
import { IntakeService } from './intake.service.js';
import { LifecycleService } from './lifecycle.service.js';
import { OperationRepository } from './operation.repository.js';
import { Operations } from './operations.js';
import { PackageService } from './package.service.js';
import { PluginHandlers } from './plugin.handlers.js';
import { PluginRepository } from './plugin.repository.js';
import { PluginService } from './plugin.service.js';
import { PublisherRepository } from './publisher.repository.js';
import { PublisherService } from './publisher.service.js';
import { RevocationService } from './revocation.service.js';
import { UpkeepService } from './upkeep.service.js';
import { VerificationService } from './verification.service.js';

@Module({
  controllers: [AuditHandlers, PluginHandlers],
  providers: [
    PluginBlobs,
    PluginRepository,
    OperationRepository,
    Operations,
    Availability,
    Fences,
    HereService,
    PublisherRepository,
    PublisherService,
    VerificationService,
    IntakeService,
    ActivationService,
    RevocationService,
    LifecycleService,
    PluginService,
    PackageService,
    UpkeepService,
  ],
})
export class PluginRegistryModule {}
