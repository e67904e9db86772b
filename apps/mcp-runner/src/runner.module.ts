import { Module } from '@nestjs/common';
import { InstanceHandlers } from './instance.handlers.js';
import { InstanceService } from './instance.service.js';
import { PackageCache } from './package-cache.js';

@Module({ controllers: [InstanceHandlers], providers: [InstanceService, PackageCache] })
export class RunnerModule {}
