"""Columns of every table, by the rule that makes it: `name` of a number, else `name:type`."""

from typing import Literal

Scope = Literal["study", "shared"]
"""Whether each study has this table, in a folder of its name, or it is one table of all studies."""
Records = Literal[
    "runs",
    "convergence",
    "full_trainings",
    "synchronization",
    "quantization",
    "peers",
    "resnet18",
    "export",
]
"""Optional records of a study; without them it does not have their tables."""

_CELL = "recipe:text strategy:text gpus:whole batch_size:whole"
_KEYS = f"{_CELL} status:text"
_LEARNING = "train_loss train_accuracy test_loss test_accuracy"
_RUN = "remedy:text global_batch:whole seed:whole factor learning_rate chosen:truth"

MADE_BY: dict[tuple[str, Scope, Records | None], dict[str, str]] = {
    ("tables_scaling", "study", "runs"): {
        "timing": f"""{_KEYS} epoch_seconds epoch_seconds_without_loading loader_seconds
            epoch_seconds_min epoch_seconds_max epoch_seconds_without_loading_min
            epoch_seconds_without_loading_max count:whole iterations:whole samples:whole
            message:text runs:whole epoch_seconds_run_min epoch_seconds_run_max
            epoch_seconds_run_std epoch_seconds_without_loading_run_std""",
        "startup": f"""{_KEYS} launch_seconds imports_seconds join_seconds dataset_seconds
            recipe_seconds startup_seconds warmup_seconds measured_seconds other_seconds
            shutdown_seconds run_seconds count:whole""",
        "readings": f"""{_CELL} estimate:text communication_seconds exposed_seconds
            overlapped_seconds spread_seconds count:whole note:text runs:whole run_std_seconds""",
        "in_memory": f"""{_CELL} in_memory_epoch_seconds in_memory_epoch_seconds_min
            in_memory_epoch_seconds_max count:whole runs:whole in_memory_epoch_seconds_run_std""",
        "ranks": f"""{_CELL} rank:whole own_epoch_seconds own_epoch_seconds_min
            own_epoch_seconds_max slower loader_seconds loader_seconds_min
            loader_seconds_max sm_mhz count:whole""",
        "device_time": f"""{_CELL} step_seconds busy_seconds compute_seconds gap_seconds kernels
            gap_seconds_min gap_seconds_max count:whole note:text""",
        "costs": f"""{_CELL} flops_per_image:whole precision:text power_capped_share
            cost_note:text peak_memory_bytes:whole memory_capacity_bytes:whole drift
            settled:truth joules_per_image watt_hours_per_epoch mean_watts mean_sm_mhz
            money_per_epoch activation_bytes_per_image:whole engine:text switches:text
            sent_share""",
        "provenance": f"""{_CELL} seed:whole status:text measured_as:text model:text training:text
            recipe_options:text compiled_batch_sizes:text cpu_threads:text hosts:text
            device_names:text device_ids:text slurm_gpus:text device:text cpu:text cpu_count:text
            python:text torch:text cuda:text nccl:text driver:text slurm_job_id:text commit:text
            config_digest:text started:text ended:text repeat:whole""",
        "speedup": f"""{_KEYS} epoch_seconds epoch_seconds_min epoch_seconds_max count:whole
            baseline_epoch_seconds speedup speedup_min speedup_max efficiency weak_speedup
            weak_efficiency fixed_global_batch_speedup fixed_global_batch_efficiency
            fixed_global_batch_speedup_min fixed_global_batch_speedup_max within_spread:truth
            note:text runs:whole speedup_low speedup_high basis:text fixed_global_batch_speedup_low
            fixed_global_batch_speedup_high""",
        "communication": f"""{_KEYS} estimate:text total_seconds compute_seconds
            communication_seconds exposed_seconds overlapped_seconds moving_seconds spread_seconds
            note:text runs:whole run_std_seconds""",
        "epoch_parts": f"""{_KEYS} epoch_seconds compute_seconds communication_seconds
            data_wait_seconds communication_estimate:text work_seconds work_seconds_min
            work_seconds_max work_seconds_run_std count:whole runs:whole note:text""",
        "bandwidth": f"""{_KEYS} bytes_per_iteration:whole iterations:whole bytes_per_epoch:whole
            estimate:text communication_seconds bandwidth_gb_per_s peak_gb_per_s utilization
            note:text""",
        "utilization": f"""{_KEYS} images_per_second images_per_second_min images_per_second_max
            images_per_second_without_loading count:whole flops_per_image:whole precision:text
            flops_per_second_per_gpu peak_flops_per_second utilization utilization_without_loading
            loading_share communication_share communication_estimate:text idle_share slower_share
            unknown_share power_capped_share note:text peak_state:text sustained_flops_per_second
            sustained_utilization""",
        "audit": f"check:text {_CELL} severity:text message:text found expected",
    },
    ("tables_scaling", "shared", "runs"): {
        "accuracy": f"study:text {_CELL} seed:whole epoch:whole {_LEARNING} status:text",
        "interconnect": """gpus:whole backend:text kind:text message_bytes:whole seconds seconds_min
            seconds_max count:whole algbw_gb_per_s busbw_gb_per_s correct:truth launch:text""",
        "interconnect_fit": """gpus:whole backend:text latency_seconds latency_error_seconds
            seconds_per_byte seconds_per_byte_error asymptotic_busbw_gb_per_s points:whole
            note:text""",
        "peaks": """quantity:text precision:text matrix_size:whole copy_bytes:whole source_gpu:whole
            target_gpu:whole unit:text value value_min value_max count:whole peak:truth
            state:text""",
        "machine": "severity:text host:text gpu:text message:text",
    },
    ("tables_experiments", "shared", "convergence"): {
        "convergence": f"""remedy:text options:text global_batch:whole gpus:whole batch_size:whole
            status:text message:text reference:truth at_edge:truth seed:whole factor learning_rate
            chosen:truth epochs:whole updates:whole planned_epochs planned_updates diverged:text
            diverged_update:whole {_LEARNING} held_out:truth validation_accuracy
            running_test_accuracy precise_test_accuracy""",
        "convergence_epochs": f"{_RUN} epoch:whole updates:whole {_LEARNING}",
        "loss_curves": f"{_RUN} update:whole train_loss",
        "remedies": """remedy:text options:text global_batch:whole gpus:whole batch_size:whole
            status:text message:text reference:truth factor learning_rate rates at_edge:truth
            epochs:whole updates:whole planned_epochs planned_updates seeds:whole
            diverged_seeds:whole train_loss train_accuracy test_loss test_accuracy test_accuracy_min
            test_accuracy_max test_difference test_low test_high test_verdict:text accuracy_margin
            compared_with:text compared_at_edge:truth same_as_compared:truth gain gain_low gain_high
            gain_high_to_refute confidence_to_refute helps:text validation_accuracy""",
        "time_to_accuracy": f"""remedy:text global_batch:whole best:truth target_accuracy
            seeds:whole reached:whole epochs_to_accuracy epochs_to_accuracy_min
            epochs_to_accuracy_max {_CELL} same_split:truth epoch_seconds epoch_speedup seconds
            reference_seconds speedup plain_reference_seconds plain_speedup watt_hours""",
        "images_to_accuracy": """accuracy global_batch:whole remedy:text planned_epochs:whole
            seeds:whole reached:whole epochs epochs_min epochs_max updates images""",
        "noise_scale": f"""{_RUN} epoch:whole updates:whole noise_scale noise_scale_low
            noise_scale_high""",
    },
    ("tables_experiments", "shared", "full_trainings"): {
        "full_trainings": f"""{_CELL} seed:whole global_batch:whole status:text target_accuracy
            epochs:whole test_accuracy reached:truth training_seconds run_seconds joules""",
        "trained_to_accuracy": f"""{_CELL} global_batch:whole target_accuracy epochs:whole
            seeds:whole reached:whole test_accuracy test_accuracy_min test_accuracy_max
            training_seconds training_seconds_min training_seconds_max run_seconds run_seconds_min
            run_seconds_max joules joules_min joules_max speedup speedup_low speedup_high""",
    },
    ("tables_experiments", "shared", "synchronization"): {
        "sampler": """sampler:text gpus:whole set_epoch:truth trained:truth seed:whole epoch:whole
            rank:whole samples:whole first_epoch overlap:whole unseen repeated""",
        "sampler_accuracy": f"gpus:whole seed:whole set_epoch:truth epochs:whole {_LEARNING}",
        "collectives": """way:text gpus:whole backend:text step:whole phase:text position:whole
            kind:text content:text dtype:text bytes:whole gradient_bytes buffer_bytes
            ranks_agree:truth note:text""",
        "buffers": """buffers:text gpus:whole seed:whole epochs:whole rank:whole test_loss
            test_accuracy epoch_seconds epoch_seconds_min epoch_seconds_max count:whole
            mean_drift_max mean_drift_mean variance_drift_max variance_drift_mean
            parameters_sha256:text buffers_sha256:text note:text""",
        "agreement": "gpus:whole strategy:text steps:whole distance",
    },
    ("tables_experiments", "shared", "quantization"): {
        "quantization": """seed:whole stage:text accuracy_percent difference_points
            agreement_percent test_images:whole standard_error_points gained:whole lost:whole
            packed_bytes:whole float32_bytes:whole compression weight_bits:whole
            activation_bits:whole bias:text logits:text unsigned:truth weight_scales:text
            weight_range:text activation_range:text rounding:text bias_correction:truth mistake:text
            calibration_images:whole weight_sqnr_db sqnr_after_relu_db propagated_sqnr_db
            clipped_share_calibration clipped_share_test accumulator_bound:whole
            logits_compared:whole logits_differing:whole revealed_by:text mean_seeds:whole
            mean_standard_error_points cpu:text commit:text""",
        "quantization_layers": """seed:whole stage:text layer:text weight_bits:whole weight_scale
            weight_minimum weight_maximum weight_clipped_share weight_sqnr_db input_scale
            accumulator_scale bias_error_steps output_scale output_minimum output_maximum top_step
            clipped_share_calibration clipped_share_test sqnr_after_relu_db propagated_sqnr_db
            accumulator_bound:whole float32_exact:truth packed_bytes:whole float32_bytes:whole
            largest_bias bias_steps""",
        "quantization_histograms": """seed:whole stage:text layer:text quantity:text values:text
            scale lowest:whole highest:whole bin_low bin_high count:whole""",
        "quantization_refused": "seed:whole network:text stage:text weight_scales:text reason:text",
        "quantization_paired": """stage:text reference_stage:text seeds:whole test_images:whole
            difference_points standard_error_points""",
    },
    ("tables_experiments", "shared", "peers"): {
        "quantization_peers": """seed:whole engine:text version:text precision:text status:text
            note:text options:text accuracy_percent difference_points standard_error_points
            agreement_percent gained:whole lost:whole test_images:whole agreement_ours_percent
            file_bytes:whole times_smaller threads batch_1_seconds batch_1_ratio batch_1_ratio_min
            batch_1_ratio_max batch_256_seconds batch_256_ratio batch_256_ratio_min
            batch_256_ratio_max cpu:text commit:text""",
    },
    ("tables_experiments", "shared", "resnet18"): {
        "quantization_resnet": """seed:whole stage:text weight_scales:text accuracy_percent
            difference_points standard_error_points agreement_percent gained:whole lost:whole
            test_images:whole float32_bytes packed_bytes:whole logits:whole differing_logits:whole
            accumulator_bound:whole device:text commit:text""",
        "quantization_gpu": """seed:whole gpu:text layer:text patches:whole inner:whole
            outputs:whole bfloat16_seconds int8_seconds""",
    },
    ("tables_experiments", "shared", "export"): {
        "quantization_export": """seed:whole model:text network:text file_bytes:whole
            times_smaller accuracy_percent difference_points agreement_percent
            differing_classes:whole logits:whole differing_logits:whole largest_steps:whole
            all_threads:whole cpu:text commit:text instructions:text onnx:text onnxruntime:text
            batch_1_one_core_seconds batch_1_one_core_ratio batch_1_one_core_ratio_min
            batch_1_one_core_ratio_max batch_1_all_cores_seconds batch_1_all_cores_ratio
            batch_1_all_cores_ratio_min batch_1_all_cores_ratio_max batch_16_one_core_seconds
            batch_16_one_core_ratio batch_16_one_core_ratio_min batch_16_one_core_ratio_max
            batch_16_all_cores_seconds batch_16_all_cores_ratio batch_16_all_cores_ratio_min
            batch_16_all_cores_ratio_max""",
    },
}
